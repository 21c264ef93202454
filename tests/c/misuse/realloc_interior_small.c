/* A pointer into a small object is made longer. */
#include "misuse.h"

int main(void) {
    char *p = malloc(256);
    announce(p + 16);
    if (!realloc(p + 16, 1000)) return 1;
    survived();
    drain();
    return 0;
}
