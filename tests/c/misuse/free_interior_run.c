/* A page inside a block of a run class. */
#include "misuse.h"

int main(void) {
    char *p = malloc(600000);
    announce(p + 65536);
    free(p + 65536);
    survived();
    drain();
    return 0;
}
