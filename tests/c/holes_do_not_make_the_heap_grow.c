/* Among more holes than a search looks at, all too small, larger blocks that come and go are found
 * again: the heap does not grow while what is live stays the same. */
#include "stats.h"

enum { MIB = 1 << 20, HOLES = 2000, BLOCKS = 8, ROUNDS = 10000 };

int main(void) {
    static void *small[2 * HOLES], *large[BLOCKS];
    uint32_t seed = 1;
    move_to(0);
    for (int i = 0; i < 2 * HOLES; i++) CHECK((small[i] = malloc(MIB + 1)));
    for (int i = 0; i < 2 * HOLES; i += 2) free(small[i]);
    const long before = statistic("compounds");
    for (int i = 0; i < ROUNDS; i++) {
        void **block = &large[next_random(&seed) >> 8 & (BLOCKS - 1)];
        free(*block);
        CHECK((*block = malloc((size_t)(3 + 2 * (i % 3)) * MIB)));
    }
    const long after = statistic("compounds");
    if (after > before + HOLES) FAIL("%ld compounds became %ld", before, after);
    return 0;
}
