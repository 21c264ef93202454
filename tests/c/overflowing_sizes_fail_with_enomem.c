/* A size past PTRDIFF_MAX, or a product past SIZE_MAX, is NULL and ENOMEM, and the old block stays. */
#include "rules.h"

static volatile size_t big = (size_t)PTRDIFF_MAX + 1;
static volatile size_t most = SIZE_MAX;
static volatile size_t half = SIZE_MAX / 2 + 1;
static volatile size_t root = (size_t)1 << 32;

static void products(void) {
    REFUSED(calloc(half, 2), ENOMEM);
    REFUSED(calloc(2, half), ENOMEM);
    REFUSED(calloc(half, 3), ENOMEM);
    REFUSED(calloc(root, root), ENOMEM);
    REFUSED(calloc(root + 1, root), ENOMEM);
    REFUSED(calloc(1, big), ENOMEM);
    REFUSED(calloc(big, 1), ENOMEM);
    REFUSED(calloc(most, most), ENOMEM);
    REFUSED(reallocarray(NULL, half, 2), ENOMEM);
    REFUSED(reallocarray(NULL, 2, half), ENOMEM);
    REFUSED(reallocarray(NULL, root, root), ENOMEM);
    REFUSED(reallocarray(NULL, 1, big), ENOMEM);
}

static void plain(void) {
    REFUSED(malloc(big), ENOMEM);
    REFUSED(malloc(most), ENOMEM);
    REFUSED(malloc((size_t)PTRDIFF_MAX), ENOMEM);
    REFUSED(realloc(NULL, big), ENOMEM);
    REFUSED(realloc(NULL, most), ENOMEM);
    REFUSED(valloc(big), ENOMEM);
    REFUSED(valloc(most), ENOMEM);
    /* Rounded up to an alignment or a page, the last ones are small numbers. */
    for (size_t less = 0; less < 10000; less = less * 2 + 1) {
        rules_at = less;
        REFUSED(malloc(most - less), ENOMEM);
        REFUSED(calloc(1, most - less), ENOMEM);
        REFUSED(realloc(NULL, most - less), ENOMEM);
        REFUSED(valloc(most - less), ENOMEM);
#ifdef __GLIBC__
        REFUSED(pvalloc(most - less), ENOMEM);
        REFUSED(pvalloc(big + less), ENOMEM);
#endif
    }
}

/* Each alignment, and sizes whose sum with it, or rounded up to it, is past the end. */
static void aligned(void) {
    void *const before = (void *)0x1234;
    for (int shift = 4; shift < 63; shift++) {
        volatile size_t alignment = (size_t)1 << shift;
        size_t sizes[] = {big, most, most - 1, most - alignment, most - alignment + 1, most - alignment + 2,
                          0 - alignment, (size_t)0 - alignment / 2, most / 2 + alignment, most - 4096};
        rules_at = alignment;
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            volatile size_t size = sizes[i];
            REFUSED(memalign(alignment, size), ENOMEM);
            REFUSED(aligned_alloc(alignment, size), ENOMEM);
            void *volatile untouched = before;
            int got = posix_memalign((void **)&untouched, alignment, size);
            RULE("posix_memalign past the end is ENOMEM", got == ENOMEM);
            RULE("posix_memalign past the end leaves the pointer", untouched == before);
        }
    }
    volatile size_t top = (size_t)1 << 63;
    REFUSED(memalign(top, 8), ENOMEM);
    REFUSED(memalign(top - 1, 8), ENOMEM);
    REFUSED(memalign(top / 2, 8), ENOMEM);
    REFUSED(aligned_alloc(top, 8), ENOMEM);
    REFUSED(aligned_alloc(top / 2, top / 2), ENOMEM);
    void *volatile untouched = before;
    RULE("posix_memalign at half of all addresses is ENOMEM", posix_memalign((void **)&untouched, top, 8) == ENOMEM);
    RULE("posix_memalign at half of all addresses leaves the pointer", untouched == before);
    REFUSED(memalign(top + 1, 8), EINVAL);
    REFUSED(memalign(most, 8), EINVAL);
}

static void old_blocks(void) {
    static const size_t sizes[] = {1, 100, 5000, 40000, 300000, 3 << 20, 40 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = malloc(sizes[i]), *old = p;
        CHECK(p);
        rules_at = sizes[i];
        size_t usable = malloc_usable_size(p);
        mark_edges(p, sizes[i], 7);
#define KEPT(call)                                                                                 \
    errno = 0;                                                                                     \
    RULE(#call " is NULL and ENOMEM", (call) == NULL && errno == ENOMEM);                          \
    RULE(#call " keeps the old block", edges_hold(old, sizes[i], 7) && malloc_usable_size(old) == usable);
        KEPT(realloc(p, big));
        KEPT(realloc(p, most));
        KEPT(realloc(p, most - 4095));
        KEPT(realloc(p, (size_t)PTRDIFF_MAX));
        KEPT(reallocarray(p, half, 2));
        KEPT(reallocarray(p, most, 16));
        KEPT(reallocarray(p, root, root));
        KEPT(reallocarray(p, 1, big));
        free(p);
    }
}

int main(void) {
    products();
    plain();
    aligned();
    old_blocks();
    return rules_end();
}
