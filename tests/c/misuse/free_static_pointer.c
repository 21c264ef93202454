/* A pointer to a static variable. */
#include "misuse.h"

static long variable[8];

int main(void) {
    announce(variable);
    free(variable);
    survived();
    drain();
    return 0;
}
