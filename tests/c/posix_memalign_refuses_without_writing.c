/* posix_memalign answers EINVAL for a bad alignment and leaves the pointer alone. */
#include "check.h"

int main(void) {
    static const size_t bad[] = {0, 1, 2, 4, 7, 12, 24, 4097, SIZE_MAX};
    void *const before = (void *)0x1234;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *p = before;
        int got = posix_memalign(&p, bad[i], 64);
        if (got != EINVAL || p != before) FAIL("alignment %zu: %d, pointer %p", bad[i], got, p);
    }
    for (size_t alignment = sizeof(void *); alignment <= 1 << 20; alignment *= 2) {
        void *p = NULL;
        CHECK(posix_memalign(&p, alignment, 0) == 0);
        CHECK(p && (uintptr_t)p % alignment == 0);
        free(p);
    }
    return 0;
}
