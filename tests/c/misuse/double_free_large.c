/* A large block freed twice. */
#include "misuse.h"

int main(void) {
    void *p = malloc(4 << 20);
    announce(p);
    free(p);
    free(p);
    survived();
    drain();
    return 0;
}
