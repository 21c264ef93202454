/* A huge block that is freed does not stay resident: most of it goes with the free, the rest bit by bit
 * with later calls, but for a cap that makes reuse cheap. */
#include "stats.h"
#include <string.h>

enum { MIB = 1 << 20, BLOCK = 1024 * MIB, AT_ONCE_KIB = 300 << 10, LATER_KIB = 80 << 10 };

int main(void) {
    const long before = resident_kib();
    char *block = malloc(BLOCK);
    CHECK(block);
    memset(block, 1, BLOCK);
    if (resident_kib() - before < BLOCK / 1024) SKIP("the memory is not counted");
    free(block);
    const long at_once = resident_kib() - before;
    if (at_once > AT_ONCE_KIB) FAIL("%ld KiB are resident after the free", at_once);
    for (int i = 0; i < 200; i++) {
        void *volatile one = malloc(3 * MIB), *volatile other = malloc(5 * MIB);
        free(one);
        free(other);
    }
    const long later = resident_kib() - before;
    if (later > LATER_KIB) FAIL("%ld KiB are resident after some calls", later);
    return 0;
}
