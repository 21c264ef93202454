/* A byte past the end of a block that is then made longer. */
#include "misuse.h"

int main(void) {
    volatile char *p = malloc(100);
    announce(p);
    p[100] = 1;
    if (!realloc((void *)p, 5000)) return 1;
    survived();
    drain();
    return 0;
}
