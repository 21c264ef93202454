/* Hundreds of bytes past the end of an object are written. */
#include "misuse.h"

int main(void) {
    char *p = malloc(100);
    malloc(100);
    announce(p);
    memset(p, 1, 400);
    free(p);
    survived();
    drain();
    return 0;
}
