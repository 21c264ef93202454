/* A small object freed twice. */
#include "misuse.h"

int main(void) {
    void *p = malloc(48);
    announce(p);
    free(p);
    free(p);
    survived();
    drain();
    return 0;
}
