/* malloc_usable_size covers the request, does not change, and every byte of it is the caller's. */
#include "check.h"

enum { AT_ONCE = 3 };

static void probe(size_t size) {
    unsigned char *held[AT_ONCE];
    size_t usable[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        held[i] = malloc(size);
        CHECK(held[i]);
        usable[i] = malloc_usable_size(held[i]);
        if (usable[i] < size) FAIL("usable size %zu of a request of %zu", usable[i], size);
        memset(held[i], i + 1, usable[i]);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        if (malloc_usable_size(held[i]) != usable[i]) FAIL("usable size changed at %zu", size);
        for (size_t k = 0; k < usable[i]; k += k + 64 < usable[i] ? 61 : 1)
            if (held[i][k] != i + 1) FAIL("byte %zu of a request of %zu changed", k, size);
        /* Growing into the usable part keeps the contents. */
        unsigned char *same = realloc(held[i], usable[i] ? usable[i] : 1);
        CHECK(same && (!usable[i] || (same[0] == i + 1 && same[usable[i] - 1] == i + 1)));
        free(same);
    }
}

int main(void) {
    for (size_t size = 0; size < 2100; size++) probe(size);
    for (size_t size = 2100; size < 300000; size += 1 + size / 40) probe(size);
    for (size_t power = 1024; power <= (size_t)8 << 20; power *= 2)
        for (int off = -1; off <= 1; off++) probe(power + (size_t)off);
    return 0;
}
