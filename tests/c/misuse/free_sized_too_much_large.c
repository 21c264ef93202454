/* A large block freed with the size of a longer one. */
#include "misuse.h"

int main(void) {
    void (*free_sized)(void *, size_t) = entry("free_sized");
    void *p = malloc(2 << 20);
    announce(p);
    free_sized(p, 5 << 20);
    survived();
    drain();
    return 0;
}
