/* Prints malloc_info to standard output and, to standard error, what mallinfo2 said at the same moment:
 * used, cached and free bytes, large blocks and their bytes, and free blocks. */
#include "check.h"

int main(void) {
    static char buffer[1 << 16];
    static void *held[3000];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (int i = 0; i < 3000; i++) CHECK(held[i] = malloc(1 + (size_t)i * 10));
    for (int i = 0; i < 3000; i += 3) free(held[i]);
    CHECK(malloc(5 << 20) && malloc(7 << 20));
    struct mallinfo2 info = mallinfo2();
    CHECK(malloc_info(0, stdout) == 0 && fflush(stdout) == 0);
    dprintf(2, "%zu %zu %zu %zu %zu %zu", info.arena, info.fsmblks, info.fordblks, info.hblks, info.hblkhd,
            info.smblks + info.ordblks);

    int refused = malloc_info(1, stdout);
    CHECK(refused == EINVAL);
    FILE *full = fopen("/dev/full", "w");
    CHECK(full && setvbuf(full, NULL, _IONBF, 0) == 0);
    CHECK(!homenode_required() || malloc_info(0, full) == -1);
    return 0;
}
