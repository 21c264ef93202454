/* Where the kernel refuses to move pages, a block that is mostly untouched is so after it has grown, too. */
#include "seccomp.h"

enum { MIB = 1 << 20, LENGTH = 256 * MIB, RESIDENT_KIB_MAX = 16 << 10 };

int main(void) {
    refuse_call(SYS_mremap, ENOMEM);
    char *block = malloc(LENGTH), *behind = malloc(2 * MIB);
    CHECK(block && behind);
    block[0] = block[LENGTH - 1] = 1;
    const long before = resident_kib();
    CHECK((block = realloc(block, 2 * (size_t)LENGTH)));
    CHECK(block[0] == 1 && block[LENGTH / 2] == 0 && block[LENGTH - 1] == 1);
    const long after = resident_kib();
    if (after > before + RESIDENT_KIB_MAX) FAIL("%ld KiB resident became %ld", before, after);
    free(behind), free(block);
    return 0;
}
