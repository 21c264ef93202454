/* An aligned block freed with the size of a longer one. */
#include "misuse.h"

int main(void) {
    void (*free_aligned_sized)(void *, size_t, size_t) = entry("free_aligned_sized");
    void *p = aligned_alloc(64, 128);
    announce(p);
    free_aligned_sized(p, 64, 4096);
    survived();
    drain();
    return 0;
}
