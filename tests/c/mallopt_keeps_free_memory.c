/* A program that wants no page faults later, as real-time ones do, turns trimming off: what it frees stays resident.
 * One that wants its memory given back says 0. */
#include "stats.h"

enum { BLOCKS = 15, BYTES = 10 << 20 };

static void *filled(size_t bytes) {
    void *block = malloc(bytes);
    CHECK(block);
    return memset(block, 1, bytes);
}

/* Holds 150 MiB of large blocks and as much of small ones at once, and frees them; resident KiB then, and after
 * calls of which each could give back a compound. */
static long fill_and_free(void) {
    static void *large[BLOCKS], *small[BLOCKS * 100];
    for (int i = 0; i < BLOCKS; i++) large[i] = filled(BYTES);
    for (int i = 0; i < BLOCKS * 100; i++) small[i] = filled(100000);
    for (int i = 0; i < BLOCKS; i++) free(large[i]);
    for (int i = 0; i < BLOCKS * 100; i++) free(small[i]);
    for (int i = 0; i < 400; i++) free(malloc(BYTES + (i & 1) * (BYTES / 2)));
    return resident_kib();
}

int main(void) {
    /* On one node: each keeps free memory of its own. */
    move_to(0);
    const long all = 2L * BLOCKS * BYTES / 1024;
    CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1 && mallopt(M_MMAP_MAX, 0) == 1);
    long kept = fill_and_free();
    if (kept < all * 9 / 10) FAIL("%ld KiB of %ld are left", kept, all);
    if (homenode_required()) CHECK((long)(mallinfo2().keepcost / 1024) > all * 3 / 4);

    CHECK(malloc_trim(0) == 1 && mallopt(M_TRIM_THRESHOLD, 0) == 1);
    long left = fill_and_free();
    if (left > all / 8) FAIL("%ld KiB of %ld are left", left, all);
    return 0;
}
