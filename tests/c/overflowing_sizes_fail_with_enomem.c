/* A size past PTRDIFF_MAX, or a product past SIZE_MAX, is NULL and ENOMEM, and the old block stays. */
#include "check.h"

static volatile size_t big = (size_t)PTRDIFF_MAX + 1;
static volatile size_t most = SIZE_MAX;
static volatile size_t half = SIZE_MAX / 2 + 1;

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK((call) == NULL);                                                                     \
        CHECK(errno == ENOMEM);                                                                    \
    } while (0)

int main(void) {
    REFUSED(malloc(big));
    REFUSED(malloc(most));
    REFUSED(malloc(most - 4096));
    REFUSED(malloc((size_t)PTRDIFF_MAX));
    REFUSED(calloc(half, 2));
    REFUSED(calloc(2, half));
    REFUSED(calloc(half, 3));
    REFUSED(calloc(1, big));
    REFUSED(calloc(most, most));
    REFUSED(realloc(NULL, big));
    REFUSED(reallocarray(NULL, half, 2));
    REFUSED(memalign(64, big));
    REFUSED(memalign(64, most));
    REFUSED(aligned_alloc(64, most - 64));
    REFUSED(valloc(most));
    REFUSED(pvalloc(most));
    REFUSED(pvalloc(most - 4096));

    static const size_t sizes[] = {1, 100, 5000, 40000, 300000, 3 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *p = malloc(sizes[i]);
        CHECK(p);
        mark_edges(p, sizes[i], 7);
        REFUSED(realloc(p, big));
        REFUSED(realloc(p, most));
        REFUSED(reallocarray(p, half, 2));
        REFUSED(reallocarray(p, most, 16));
        CHECK(edges_hold(p, sizes[i], 7));
        free(p);
    }

    void *const before = (void *)0x1234, *untouched = before;
    CHECK(posix_memalign(&untouched, 64, big) == ENOMEM && untouched == before);
    CHECK(posix_memalign(&untouched, 4096, most - 100) == ENOMEM && untouched == before);
    return 0;
}
