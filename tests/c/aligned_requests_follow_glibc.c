/* aligned_alloc, memalign, valloc and pvalloc accept what glibc 2.36 accepts. */
#include "rules.h"

#define GIVES(call, alignment)                                                                     \
    do {                                                                                           \
        void *volatile given = (call);                                                             \
        RULE(#call " is on " #alignment, on(given, alignment));                                    \
        free(given);                                                                               \
    } while (0)

int main(void) {
    volatile size_t page = (size_t)sysconf(_SC_PAGESIZE), none = 0;

    /* The size need not be a multiple of the alignment (C17, DR 460). */
    GIVES(aligned_alloc(64, 65), 64);
    GIVES(aligned_alloc(64, none), 64);
    GIVES(aligned_alloc(1, 5), 16);
    GIVES(aligned_alloc(2, 1), 16);
    GIVES(aligned_alloc(8, 24), 16);
    GIVES(aligned_alloc(4096, 4096), 4096);
    GIVES(aligned_alloc(1 << 20, 1), 1 << 20);

    /* memalign rounds an odd alignment up to a power of two. */
    GIVES(memalign(none, 64), 16);
    GIVES(memalign(1, 64), 16);
    GIVES(memalign(3, 64), 4);
    GIVES(memalign(48, 100), 64);
    GIVES(memalign(65, 100), 128);
    GIVES(memalign(4097, 100), 8192);

    GIVES(valloc(1), page);
    GIVES(valloc(none), page);
    GIVES(valloc(page + 1), page);
    GIVES(valloc(3 << 20), page);
#ifdef __GLIBC__
    size_t sizes[] = {0, 1, page - 1, page, page + 1, 100 * page + 1, (3 << 20) + 1};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rules_at = sizes[i];
        unsigned char *p = unfortified(pvalloc(sizes[i]));
        size_t whole = (sizes[i] + page - 1) / page * page;
        RULE("pvalloc is on a page", on(p, page));
        RULE("pvalloc gives whole pages", malloc_usable_size(p) >= whole);
        memset(p, 1, whole);
        free(p);
    }
#endif
    return rules_end();
}
