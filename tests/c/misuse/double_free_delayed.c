/* A small object freed twice, with thousands of its size freed in between. */
#include "misuse.h"

enum { COUNT = 5000 };

int main(void) {
    static void *others[COUNT];
    for (int i = 0; i < COUNT; i++) others[i] = malloc(80);
    void *p = others[0];
    announce(p);
    for (int i = 0; i < COUNT; i++) free(others[i]);
    free(p);
    survived();
    drain();
    return 0;
}
