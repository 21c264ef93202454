/* A page inside a large block. */
#include "misuse.h"

int main(void) {
    char *p = malloc(8 << 20);
    announce(p + 4096);
    free(p + 4096);
    survived();
    drain();
    return 0;
}
