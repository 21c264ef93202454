/* Requests of no bytes give blocks of their own; realloc to none frees and gives NULL. */
#include "rules.h"

enum { ENTRIES = 12 };
static volatile size_t none = 0;

static void take_none(void *blocks[ENTRIES]) {
    void *posix = NULL;
    RULE("posix_memalign of no bytes is 0", posix_memalign(&posix, 64, none) == 0);
    void *made[ENTRIES] = {
        malloc(none),     calloc(none, 8),           calloc(8, none),     realloc(NULL, none),
        reallocarray(NULL, none, 16), reallocarray(NULL, 16, none), aligned_alloc(64, none),
        memalign(64, none), posix,                   valloc(none),
#ifdef __GLIBC__
        pvalloc(none),
#else
        valloc(none),
#endif
        malloc(none),
    };
    memcpy(blocks, made, sizeof made);
}

static void to_none(size_t size) {
    rules_at = size;
    void *p = malloc(size), *q = malloc(size), *r = malloc(size), *null = NULL;
    CHECK(p && q && r);
    KEEPS_ERRNO(null = realloc(p, none));
    RULE("realloc(p, 0) is NULL", null == NULL);
    KEEPS_ERRNO(null = reallocarray(q, none, 16));
    RULE("reallocarray(p, 0, 16) is NULL", null == NULL);
    KEEPS_ERRNO(null = reallocarray(r, 16, none));
    RULE("reallocarray(p, 16, 0) is NULL", null == NULL);
}

int main(void) {
    void *blocks[ENTRIES];
    take_none(blocks);
    for (int i = 0; i < ENTRIES; i++) {
        rules_at = (size_t)i;
        RULE("a request of no bytes is no failure", blocks[i] != NULL);
        for (int k = 0; k < i; k++) RULE("two requests of no bytes are two blocks", blocks[i] != blocks[k]);
        void *grown = realloc(blocks[i], 100);
        RULE("a block of no bytes grows", grown != NULL);
        memset(grown, 1, 100);
        free(grown);
    }
    KEEPS_ERRNO(free(NULL));
    static const size_t sizes[] = {1, 10, 100, 5000, 40000, 300000, (size_t)5 << 20, (size_t)80 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) to_none(sizes[i]);
    void *p = malloc(none);
    CHECK(p);
    RULE("realloc of a block of no bytes to none is NULL", realloc(p, none) == NULL);

    long before = 0;
    for (int i = 0; i < 2000; i++) {
        CHECK((p = malloc(200000)));
        memset(p, 1, 200000);
        CHECK(realloc(p, none) == NULL);
        if (i == 100) before = resident_kib();
    }
    RULE("realloc(p, 0) frees", resident_kib() < before + 64 * 1024);
    return rules_end();
}
