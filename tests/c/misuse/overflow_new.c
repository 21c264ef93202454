/* A byte past the end of what operator new returned is written. */
#include "misuse.h"

int main(void) {
    void *(*plain_new)(size_t) = entry("_Znwm");
    void (*plain_delete)(void *) = entry("_ZdlPv");
    volatile char *p = plain_new(100);
    announce(p);
    p[100] = 1;
    plain_delete((void *)p);
    survived();
    drain();
    return 0;
}
