/* Neither a success nor a free changes errno, at any size, on a hit or on a miss. */
#include "check.h"

#define KEEPS_ERRNO(statement)                                                                     \
    do {                                                                                           \
        errno = 4321;                                                                              \
        statement;                                                                                 \
        if (errno != 4321) FAIL("errno became %d at size %zu: %s", errno, n, #statement);          \
    } while (0)

int main(void) {
    for (size_t n = 1; n <= (size_t)64 << 20; n = n * 3 / 2 + 1) {
        void *p, *q = NULL;
        KEEPS_ERRNO(p = malloc(n));
        CHECK(p);
        KEEPS_ERRNO(p = realloc(p, n * 2));
        CHECK(p);
        KEEPS_ERRNO(p = realloc(p, n));
        CHECK(p);
        KEEPS_ERRNO(free(p));
        KEEPS_ERRNO(p = calloc(1, n));
        CHECK(p);
        KEEPS_ERRNO(CHECK(malloc_usable_size(p) >= n));
        KEEPS_ERRNO(free(p));
        KEEPS_ERRNO(CHECK(posix_memalign(&q, 4096, n) == 0));
        KEEPS_ERRNO(free(q));
        KEEPS_ERRNO(p = memalign(128, n));
        CHECK(p);
        KEEPS_ERRNO(free(p));
        KEEPS_ERRNO(free(NULL));
        KEEPS_ERRNO(malloc_trim(0));
    }
    /* Enough live objects that a free overflows its cache and goes down to the slab. */
    size_t n = 64;
    enum { MANY = 20000 };
    static void *held[MANY];
    for (int i = 0; i < MANY; i++) KEEPS_ERRNO(held[i] = malloc(n));
    for (int i = 0; i < MANY; i++) KEEPS_ERRNO(free(held[i]));
    return 0;
}
