/* The length of a large block that was freed is asked for. */
#include "misuse.h"

int main(void) {
    void *p = malloc(5 << 20);
    announce(p);
    free(p);
    if (!malloc_usable_size(p)) return 1;
    survived();
    drain();
    return 0;
}
