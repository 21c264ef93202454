/* A byte past the end of a large block is written. */
#include "misuse.h"

int main(void) {
    volatile char *p = malloc((2 << 20) + 10);
    announce(p);
    p[(2 << 20) + 10] = 1;
    free((void *)p);
    survived();
    drain();
    return 0;
}
