/* A byte past the end of an aligned block is written. */
#include "misuse.h"

int main(void) {
    volatile char *p = aligned_alloc(64, 192);
    announce(p);
    p[192] = 1;
    free((void *)p);
    survived();
    drain();
    return 0;
}
