/* An object deleted as one of a longer type. */
#include "misuse.h"

int main(void) {
    void (*sized_delete)(void *, size_t) = entry("_ZdlPvm");
    void *(*plain_new)(size_t) = entry("_Znwm");
    void *p = plain_new(40);
    announce(p);
    sized_delete(p, 400);
    survived();
    drain();
    return 0;
}
