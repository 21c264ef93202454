/* A byte past the end of a block that was freed. */
#include "misuse.h"

int main(void) {
    volatile char *p = malloc(100);
    announce(p);
    free((void *)p);
    p[100] = 1;
    next_call();
    survived();
    drain();
    return 0;
}
