/* A cleared block freed twice. */
#include "misuse.h"

int main(void) {
    void *p = calloc(10, 30);
    announce(p);
    free(p);
    free(p);
    survived();
    drain();
    return 0;
}
