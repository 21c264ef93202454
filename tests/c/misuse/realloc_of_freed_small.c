/* A small object that was freed is made longer. */
#include "misuse.h"

int main(void) {
    void *p = malloc(100);
    announce(p);
    free(p);
    if (!realloc(p, 4000)) return 1;
    survived();
    drain();
    return 0;
}
