/* Neither a success nor a free changes errno, at any size, on a hit or on a miss. */
#include "rules.h"

static void each_entry(size_t n) {
    void *p, *q = NULL;
    rules_at = n;
#define GIVES(call)                                                                                \
    KEEPS_ERRNO(p = call);                                                                         \
    CHECK(p);
    GIVES(malloc(n));
    GIVES(realloc(p, n * 2));
    GIVES(realloc(p, n));
    GIVES(realloc(p, n + 1));
    GIVES(reallocarray(p, 3, n));
    KEEPS_ERRNO(free(p));
    GIVES(calloc(1, n));
    KEEPS_ERRNO(CHECK(malloc_usable_size(p) >= n));
    KEEPS_ERRNO(free(p));
    KEEPS_ERRNO(CHECK(posix_memalign(&q, 4096, n) == 0));
    KEEPS_ERRNO(free(q));
    GIVES(memalign(128, n));
    KEEPS_ERRNO(free(p));
    GIVES(aligned_alloc(1 << 16, n));
    KEEPS_ERRNO(free(p));
    GIVES(valloc(n));
    KEEPS_ERRNO(free(p));
#ifdef __GLIBC__
    GIVES(pvalloc(n));
    KEEPS_ERRNO(free(p));
    KEEPS_ERRNO(malloc_trim(0));
    KEEPS_ERRNO(mallinfo2());
#endif
    KEEPS_ERRNO(CHECK(malloc_usable_size(NULL) == 0));
    KEEPS_ERRNO(free(NULL));
}

int main(void) {
    for (size_t n = 1; n <= (size_t)64 << 20; n = n * 3 / 2 + 1) each_entry(n);
    /* Enough live objects that a free overflows its cache and goes down to the slab. */
    enum { MANY = 20000 };
    static void *held[MANY];
    for (int i = 0; i < MANY; i++) KEEPS_ERRNO(held[i] = malloc(64));
    for (int i = 0; i < MANY; i++) KEEPS_ERRNO(free(held[i]));
    return rules_end();
}
