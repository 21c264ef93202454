/* calloc gives zeros where dirty blocks of the same size were freed a moment ago. */
#include "check.h"

static int all_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return 0;
    return 1;
}

int main(void) {
    static const size_t sizes[] = {1,    8,     24,     100,    1000,    4096,   20000, 32768,
                                   65536, 200000, 262144, 600000, 1 << 20, 1 << 21, 5 << 20};
    enum { AT_ONCE = 20 };
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int round = 0; round < 3; round++) {
            unsigned char *held[AT_ONCE];
            for (int i = 0; i < AT_ONCE; i++) {
                held[i] = calloc(1, sizes[s]);
                CHECK(held[i]);
                if (!all_zero(held[i], sizes[s])) FAIL("calloc(1, %zu) is dirty", sizes[s]);
                memset(held[i], 0xdb, malloc_usable_size(held[i]));
            }
            for (int i = 0; i < AT_ONCE; i++) free(held[i]);
            if (round == 1) malloc_trim(0);
        }
    }
    return 0;
}
