/* A pointer into the middle of a small object, aligned like an object. */
#include "misuse.h"

int main(void) {
    char *p = malloc(256);
    announce(p + 16);
    free(p + 16);
    survived();
    drain();
    return 0;
}
