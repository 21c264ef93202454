/* What a variable holds that nobody set: here bytes that are no address. */
#include "misuse.h"

int main(void) {
    void *p;
    memset(&p, 0x5a, sizeof p);
    announce(p);
    free(p);
    survived();
    drain();
    return 0;
}
