/* A block freed twice, the second time after a trim took its pages away. */
#include "misuse.h"

int main(void) {
    void *p = malloc(40000);
    announce(p);
    free(p);
    malloc_trim(0);
    free(p);
    survived();
    drain();
    return 0;
}
