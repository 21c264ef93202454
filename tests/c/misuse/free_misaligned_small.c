/* A pointer that no allocation can have returned: odd. */
#include "misuse.h"

int main(void) {
    char *p = malloc(256);
    announce(p + 1);
    free(p + 1);
    survived();
    drain();
    return 0;
}
