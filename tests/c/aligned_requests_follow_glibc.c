/* aligned_alloc, memalign, valloc and pvalloc accept what glibc 2.36 accepts. */
#include "check.h"

static int on(const void *p, size_t alignment) { return p && (uintptr_t)p % alignment == 0; }

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p;

    /* The size need not be a multiple of the alignment (C17, DR 460). */
    CHECK(on(p = aligned_alloc(64, 65), 64));
    free(p);
    CHECK(on(p = aligned_alloc(64, 0), 64));
    free(p);
    CHECK(on(p = aligned_alloc(1, 5), 1));
    free(p);
    CHECK(on(p = aligned_alloc(4096, 4096), 4096));
    free(p);

    /* memalign rounds an odd alignment up to a power of two. */
    CHECK(on(p = memalign(3, 64), 4));
    free(p);
    CHECK(on(p = memalign(0, 64), 1));
    free(p);
    CHECK(on(p = memalign(48, 100), 64));
    free(p);
    errno = 0;
    CHECK(memalign(SIZE_MAX / 2 + 2, 8) == NULL && errno == EINVAL);

    CHECK(on(p = valloc(1), page));
    free(p);
    CHECK(on(p = valloc(0), page));
    free(p);
    CHECK(on(p = pvalloc(1), page) && malloc_usable_size(p) >= page);
    memset(p, 1, page);
    free(p);
    CHECK(on(p = pvalloc(page + 1), page) && malloc_usable_size(p) >= 2 * page);
    free(p);
    CHECK(on(p = pvalloc(0), page));
    free(p);
    return 0;
}
