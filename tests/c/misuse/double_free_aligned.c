/* A block of posix_memalign freed twice. */
#include "misuse.h"

int main(void) {
    void *p = NULL;
    if (posix_memalign(&p, 256, 1000)) FAIL("no memory");
    announce(p);
    free(p);
    free(p);
    survived();
    drain();
    return 0;
}
