/* A freed object is written up to its usable size. */
#include "misuse.h"

int main(void) {
    char *p = malloc(1000);
    const size_t usable = malloc_usable_size(p);
    announce(p);
    free(p);
    memset(p, 7, usable);
    next_call();
    survived();
    drain();
    return 0;
}
