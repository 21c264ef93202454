/* An odd pointer into a large block. */
#include "misuse.h"

int main(void) {
    char *p = malloc(8 << 20);
    announce(p + 1);
    free(p + 1);
    survived();
    drain();
    return 0;
}
