/* A byte past the end of an object is written. */
#include "misuse.h"

int main(void) {
    volatile char *p = malloc(100);
    announce(p);
    p[100] = 1;
    free((void *)p);
    survived();
    drain();
    return 0;
}
