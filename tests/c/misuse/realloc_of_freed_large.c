/* A large block that was freed is made longer. */
#include "misuse.h"

int main(void) {
    void *p = malloc(5 << 20);
    announce(p);
    free(p);
    if (!realloc(p, 8 << 20)) return 1;
    survived();
    drain();
    return 0;
}
