/* A small object freed with the size of a longer one. */
#include "misuse.h"

int main(void) {
    void (*free_sized)(void *, size_t) = entry("free_sized");
    void *p = malloc(100);
    announce(p);
    free_sized(p, 500);
    survived();
    drain();
    return 0;
}
