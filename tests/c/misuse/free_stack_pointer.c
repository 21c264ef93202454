/* A pointer to a local variable. */
#include "misuse.h"

int main(void) {
    long local[8] = {0};
    announce(local);
    free(local);
    survived();
    drain();
    return 0;
}
