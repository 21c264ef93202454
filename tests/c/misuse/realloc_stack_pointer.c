/* A local variable is made longer. */
#include "misuse.h"

int main(void) {
    long local[8] = {0};
    announce(local);
    if (!realloc(local, 1000)) return 1;
    survived();
    drain();
    return 0;
}
