/* The length of a small object that was freed is asked for. */
#include "misuse.h"

int main(void) {
    void *p = malloc(100);
    announce(p);
    free(p);
    if (!malloc_usable_size(p)) return 1;
    survived();
    drain();
    return 0;
}
