/* Sizes 0 to 70000, run edges, 1 MiB and several MiB: live objects never share a byte.
 * A window of live objects slides over the sizes; each carries its own pattern to the end. */
#include "check.h"

enum { WINDOW = 64 };
static uint64_t *held[WINDOW];
static size_t sizes[WINDOW];
static uint64_t serials[WINDOW];

static void retire(unsigned slot) {
    if (!held[slot]) return;
    size_t words = sizes[slot] / 8, step = words > 4096 ? 61 : 1;
    for (size_t i = 0; i < words; i += step)
        if (held[slot][i] != serials[slot] + i) FAIL("size %zu: word %zu changed", sizes[slot], i);
    if (words && held[slot][words - 1] != serials[slot] + words - 1)
        FAIL("size %zu: last word changed", sizes[slot]);
    free(held[slot]);
    held[slot] = NULL;
}

static void place(size_t size) {
    static uint64_t serial;
    unsigned slot = (unsigned)(++serial % WINDOW);
    retire(slot);
    held[slot] = malloc(size);
    if (!held[slot]) FAIL("malloc(%zu) is NULL", size);
    sizes[slot] = size, serials[slot] = serial << 32;
    size_t words = size / 8, step = words > 4096 ? 61 : 1;
    for (size_t i = 0; i < words; i += step) held[slot][i] = serials[slot] + i;
    if (words) held[slot][words - 1] = serials[slot] + words - 1;
}

int main(void) {
    for (size_t size = 0; size <= 70000; size += size < 3000 ? 1 : 7) place(size);
    for (size_t edge = 32768; edge <= (size_t)2 << 20; edge += 32768)
        for (int off = -8; off <= 8; off += 8) place(edge + (size_t)off);
    for (int i = 0; i < 200; i++) place(((size_t)1 << 20) + (size_t)(i % 5) * 700000 + (size_t)i);
    for (size_t size = 70000; size > 0; size -= size > 50 ? 49 : 1) place(size);
    for (unsigned slot = 0; slot < WINDOW; slot++) retire(slot);
    return 0;
}
