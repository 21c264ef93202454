/* A byte past the end of an object that is as long as its class. */
#include "misuse.h"

int main(void) {
    volatile char *p = malloc(64);
    announce(p);
    p[64] = 1;
    free((void *)p);
    survived();
    drain();
    return 0;
}
