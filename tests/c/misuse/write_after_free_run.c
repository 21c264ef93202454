/* A freed block of a run class is written. */
#include "misuse.h"

int main(void) {
    char *p = malloc(600000);
    announce(p);
    free(p);
    p[5000] = 1;
    next_call();
    survived();
    drain();
    return 0;
}
