/* An address inside the reserved space where nothing was ever allocated. */
#include "misuse.h"

int main(void) {
    char *p = (char *)malloc(48) + (64 << 20);
    announce(p);
    free(p);
    survived();
    drain();
    return 0;
}
