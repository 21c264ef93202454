/* glibc's second names of malloc's family (__libc_malloc and the like) reach the same heap as the first. */
#include "check.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
extern void __libc_free(void *);
extern int __libc_mallopt(int, int);
extern struct mallinfo __libc_mallinfo(void);
/* Not for programs in glibc's library, but for its other libraries. */
extern void *__libc_reallocarray(void *, size_t, size_t) __attribute__((weak));
extern int __posix_memalign(void **, size_t, size_t) __attribute__((weak));

static int on(const void *p, size_t alignment) { return p && (uintptr_t)p % alignment == 0; }

/* What one name gave and another one took back is what the first one gives again. */
static int share_a_cache(size_t size) {
    for (int i = 0; i < 1000; i++) {
        void *first = malloc(size);
        __libc_free(first);
        void *second = __libc_malloc(size);
        free(second);
        if (first == second) return 1;
    }
    return 0;
}

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t n = 1; n < (size_t)4 << 20; n = n * 2 + 1) {
        CHECK(share_a_cache(n));
        unsigned char *p = __libc_calloc(3, n);
        CHECK(on(p, 16) && !p[0] && !p[3 * n - 1] && malloc_usable_size(p) >= 3 * n);
        mark_edges(p, n, 9);
        CHECK((p = __libc_realloc(p, n * 2)) && p[0] == 9 && p[n - 1] == 9);
        free(p);
        CHECK(on(p = __libc_memalign(256, n), 256));
        free(p);
        CHECK(on(p = __libc_memalign(48, n), 64));
        __libc_free(p);
        CHECK(on(p = __libc_valloc(n), page));
        free(p);
        CHECK(on(p = __libc_pvalloc(n), page) && malloc_usable_size(p) >= page);
        free(p);
        CHECK(on(p = __libc_realloc(NULL, n), 16) && __libc_realloc(p, 0) == NULL);
        void *q = NULL;
        if (__posix_memalign) CHECK(__posix_memalign(&q, 512, n) == 0 && on(q, 512));
        free(q);
        if (__libc_reallocarray) free(__libc_reallocarray(malloc(n), 2, n));
    }
    CHECK(!homenode_required() || (__posix_memalign && __libc_reallocarray));
    void *volatile q = (void *)0x1234;
    if (__posix_memalign) CHECK(__posix_memalign((void **)&q, 24, 8) == EINVAL && q == (void *)0x1234);
    errno = 0;
    CHECK(!__libc_malloc((size_t)PTRDIFF_MAX + 1) && errno == ENOMEM);
    errno = 0;
    CHECK(!__libc_calloc(SIZE_MAX / 2, 3) && errno == ENOMEM);
    errno = 0;
    CHECK(!__libc_memalign(SIZE_MAX / 2 + 2, 8) && errno == EINVAL);
    __libc_mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)__libc_mallinfo();
    return 0;
}
