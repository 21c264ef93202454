/* A large block freed twice, with another one freed in between. */
#include "misuse.h"

int main(void) {
    void *p = malloc(4 << 20), *q = malloc(6 << 20);
    announce(p);
    free(p);
    free(q);
    free(p);
    survived();
    drain();
    return 0;
}
