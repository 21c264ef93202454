/* A freed large block is written. */
#include "misuse.h"

int main(void) {
    char *p = malloc(2 << 20);
    announce(p);
    free(p);
    p[5000] = 1;
    next_call();
    survived();
    drain();
    return 0;
}
