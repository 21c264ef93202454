/* calloc gives zeros where dirty blocks of the same size were freed a moment ago, however they were made. */
#include "rules.h"

enum { AT_ONCE = 20 };

static void rounds(size_t size) {
    for (int round = 0; round < 3; round++) {
        unsigned char *held[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            held[i] = i % 2 ? calloc(1, size) : calloc(size, 1);
            CHECK(held[i]);
            rules_at = size;
            RULE("calloc gives zeros", is_zero(held[i], size));
            memset(unfortified(held[i]), 0xdb, malloc_usable_size(held[i]));
        }
        for (int i = 0; i < AT_ONCE; i++) free(held[i]);
#ifdef __GLIBC__
        if (round == 1) malloc_trim(0);
#endif
    }
}

/* Blocks that grew, shrank or were aligned leave their dirt elsewhere than a calloc's. */
static void after_others(size_t size) {
    unsigned char *p = malloc(size);
    CHECK(p);
    memset(p, 0xdb, size);
    CHECK((p = realloc(p, size * 3)));
    memset(p, 0xdb, size * 3);
    CHECK((p = realloc(p, size / 2 + 1)));
    free(p);
    CHECK((p = aligned_alloc(4096, size)));
    memset(p, 0xdb, size);
    free(p);
    for (size_t n = size / 2 + 1; n <= size * 3; n += size / 2 + 1) {
        unsigned char *q = calloc(n, 1);
        CHECK(q);
        rules_at = n;
        RULE("calloc gives zeros after a realloc's dirt", is_zero(q, n));
        free(q);
    }
}

int main(void) {
    static const size_t sizes[] = {1,    8,     24,     100,    1000,    4096,   20000, 32768,
                                   65536, 200000, 262144, 600000, 1 << 20, 1 << 21, 5 << 20};
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) rounds(sizes[s]), after_others(sizes[s]);
    for (size_t size = 1; size < 3000; size += 7) rounds(size);
    return rules_end();
}
