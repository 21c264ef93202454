/* A byte past the end of a block that realloc has made shorter. */
#include "misuse.h"

int main(void) {
    volatile char *p = realloc(malloc(100), 60);
    announce(p);
    p[60] = 1;
    free((void *)p);
    survived();
    drain();
    return 0;
}
