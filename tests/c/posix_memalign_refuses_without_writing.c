/* posix_memalign returns EINVAL or ENOMEM, and leaves the pointer and errno alone. */
#include "rules.h"

int main(void) {
    static const size_t bad[] = {0, 1, 2, 4, 7, 12, 24, 40, 4097, SIZE_MAX, SIZE_MAX - 7};
    static const size_t sizes[] = {0, 1, 64, 5000, 3 << 20, SIZE_MAX};
    void *const before = (void *)0x1234;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            void *p = before;
            int got = 0;
            volatile size_t alignment = rules_at = bad[i], size = sizes[k];
            KEEPS_ERRNO(got = posix_memalign(&p, alignment, size));
            RULE("posix_memalign with a bad alignment is EINVAL", got == EINVAL);
            RULE("posix_memalign with a bad alignment leaves the pointer", p == before);
        }
    }
    for (size_t alignment = sizeof(void *); alignment <= 1 << 22; alignment *= 2) {
        void *p = NULL, *q = before;
        int got = -1;
        rules_at = alignment;
        KEEPS_ERRNO(got = posix_memalign(&p, alignment, 0));
        RULE("posix_memalign of no bytes is aligned", got == 0 && on(p, alignment));
        free(p);
        volatile size_t most = (size_t)PTRDIFF_MAX + 1;
        errno = 4321;
        got = posix_memalign(&q, alignment, most);
        RULE("posix_memalign without memory is ENOMEM", got == ENOMEM);
        RULE("posix_memalign without memory leaves the pointer", q == before);
        /* POSIX asks for no more than the result; glibc sets errno all the same. */
        if (homenode_required()) RULE("posix_memalign without memory leaves errno", errno == 4321);
    }
    return rules_end();
}
