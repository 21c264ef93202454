/* aligned_alloc with an alignment that is no power of two is NULL and EINVAL (C17, glibc from 2.38 on; an
 * older one rounds up, as memalign does). */
#include "rules.h"
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

static int rounds_up(void) {
#ifdef __GLIBC__
    int minor = 0;
    sscanf(gnu_get_libc_version(), "2.%d", &minor);
    return !homenode_required() && minor < 38;
#else
    return 0;
#endif
}

int main(void) {
    if (rounds_up()) SKIP("this glibc rounds up");
    static const size_t bad[] = {0, 3, 24, 48, 4095, 4097, SIZE_MAX, SIZE_MAX / 2 + 2};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        volatile size_t alignment = rules_at = bad[i];
        REFUSED(aligned_alloc(alignment, 64), EINVAL);
        REFUSED(aligned_alloc(alignment, 0), EINVAL);
        REFUSED(aligned_alloc(alignment, (size_t)3 << 20), EINVAL);
    }
    return rules_end();
}
