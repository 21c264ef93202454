/* mallopt says yes and no where glibc does; M_PERTURB alone, which would be a promise, is refused on homenode. */
#include "check.h"
#include <limits.h>

int main(void) {
    static const int hints[] = {M_TRIM_THRESHOLD, M_TOP_PAD,      M_MMAP_THRESHOLD, M_MMAP_MAX, M_ARENA_TEST,
                                M_ARENA_MAX,      M_CHECK_ACTION, M_NLBLKS,         M_GRAIN,    M_KEEP,
                                77,               -204};
    static const int values[] = {0, 1, -1, 8, 128 << 10, 32 << 20, INT_MAX, INT_MIN};
    errno = 0;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        for (size_t j = 0; j < sizeof values / sizeof *values; j++)
            CHECK(mallopt(hints[i], values[j]) == 1);
    CHECK(mallopt(M_TOP_PAD, 0) == 1 && mallopt(M_MMAP_THRESHOLD, 128 << 10) == 1);
    CHECK(mallopt(M_MXFAST, 0) == 1 && mallopt(M_MXFAST, 160) == 1);
    CHECK(mallopt(M_MXFAST, 161) == 0 && mallopt(M_MXFAST, -1) == 0);
    CHECK(mallopt(M_PERTURB, 0) == 1);
    CHECK(mallopt(M_PERTURB, 0xa5) == !homenode_required());
    CHECK(errno == 0);
    return allocate_each_kind();
}
