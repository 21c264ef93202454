/* A byte past the end of a block that is never freed. */
#include "misuse.h"

int main(void) {
    volatile char *p = malloc(100);
    announce(p);
    p[100] = 1;
    survived();
    drain();
    return 0;
}
