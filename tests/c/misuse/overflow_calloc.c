/* A byte past the end of a cleared block is written. */
#include "misuse.h"

int main(void) {
    volatile char *p = calloc(25, 4);
    announce(p);
    p[100] = 1;
    free((void *)p);
    survived();
    drain();
    return 0;
}
