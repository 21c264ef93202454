/* aligned_alloc with an alignment that is no power of two is NULL and EINVAL (glibc from 2.38 on). */
#include "check.h"

int main(void) {
    static const size_t bad[] = {0, 3, 24, 48, 4095, 4097, SIZE_MAX, SIZE_MAX / 2 + 2};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        void *p = aligned_alloc(bad[i], 64);
        if (p || errno != EINVAL) FAIL("aligned_alloc(%zu, 64) = %p, errno %d", bad[i], p, errno);
    }
    return 0;
}
