/* A small object freed with a size that its class has, but that was not asked for. */
#include "misuse.h"

int main(void) {
    void (*free_sized)(void *, size_t) = entry("free_sized");
    void *p = malloc(100);
    announce(p);
    free_sized(p, 110);
    survived();
    drain();
    return 0;
}
