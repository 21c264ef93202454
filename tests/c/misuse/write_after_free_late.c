/* A freed object is written when a thousand others have been freed after it. */
#include "misuse.h"

int main(void) {
    char *p = malloc(100);
    announce(p);
    free(p);
    for (int i = 0; i < 1000; i++) free(malloc(100));
    p[50] = 1;
    next_call();
    survived();
    drain();
    return 0;
}
