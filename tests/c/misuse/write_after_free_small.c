/* A freed object is written. */
#include "misuse.h"

int main(void) {
    char *p = malloc(100);
    announce(p);
    free(p);
    p[99] = 1;
    next_call();
    survived();
    drain();
    return 0;
}
