/* What is parked goes back when it is not wanted: small objects get its pages, and no others. */
#include "stats.h"
#include <string.h>

enum { MIB = 1 << 20, BLOCK = 60 * MIB, SIZE = 1000, OBJECTS = BLOCK / SIZE };

int main(void) {
    const long before = resident_kib();
    char *block = malloc(BLOCK);
    CHECK(block);
    memset(block, 1, BLOCK);
    free(block);
    for (int i = 0; i < OBJECTS; i++) {
        char *object = malloc(SIZE);
        CHECK(object);
        memset(object, 1, SIZE);
    }
    const long more = resident_kib() - before;
    if (more > (BLOCK + 16 * MIB) / 1024) FAIL("%ld KiB for %d", more, BLOCK / 1024);
    return 0;
}
