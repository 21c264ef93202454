/* Where the address space is small, a program still gets its first MiB. The runner sets the limit. */
#include "check.h"

enum { PIECES = 1024, BYTES = 1024 };

int main(void) {
    static void *held[PIECES];
    for (int i = 0; i < PIECES; i++) {
        if (!(held[i] = malloc(BYTES))) FAIL("piece %d is NULL", i);
        mark_edges(held[i], BYTES, (unsigned char)i);
    }
    for (int i = 0; i < PIECES; i++) {
        CHECK(edges_hold(held[i], BYTES, (unsigned char)i));
        free(held[i]);
    }
    return 0;
}
