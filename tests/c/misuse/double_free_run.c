/* A block of a run class (over 32 KiB) freed twice. */
#include "misuse.h"

int main(void) {
    void *p = malloc(600000);
    announce(p);
    free(p);
    free(p);
    survived();
    drain();
    return 0;
}
