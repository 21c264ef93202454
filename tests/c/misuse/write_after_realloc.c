/* A block is written at its old address after realloc. */
#include "misuse.h"

int main(void) {
    char *p = malloc(100);
    announce(p);
    if (!realloc(p, 5000)) return 1;
    p[10] = 1;
    next_call();
    survived();
    drain();
    return 0;
}
