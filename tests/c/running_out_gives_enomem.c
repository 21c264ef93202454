/* With the address space limited, every entry ends in NULL and ENOMEM, and memory given back is
 * usable again. The runner limits the address space before the program starts. */
#include "check.h"
#include <sys/resource.h>

enum { MANY = 1 << 20 };
static void **held;

static void exhaust(size_t size) {
    int count = 0;
    while (count < MANY) {
        errno = 0;
        void *p = malloc(size);
        if (!p) break;
        mark_edges(p, size, 1);
        held[count++] = p;
    }
    if (count == MANY) FAIL("%d blocks of %zu bytes and no end", count, size);
    CHECK(errno == ENOMEM);
    if (count < 10) FAIL("only %d blocks of %zu bytes", count, size);
    errno = 0;
    CHECK(calloc(1, (size_t)1 << 40) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(realloc(held[0], (size_t)1 << 40) == NULL && errno == ENOMEM);
    void *untouched = NULL;
    CHECK(posix_memalign(&untouched, 64, (size_t)1 << 40) == ENOMEM && !untouched);
    for (int i = 0; i < count; i++) free(held[i]);
    malloc_trim(0);
    CHECK(allocate_each_kind() == 0);
}

int main(void) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    if (limit.rlim_cur > (rlim_t)2 << 30) SKIP("the address space is not limited");
    CHECK((held = malloc(MANY * sizeof *held)));
    exhaust(1 << 20);
    exhaust(10000);
    exhaust(5 << 20);
    exhaust(1 << 20);
    return 0;
}
