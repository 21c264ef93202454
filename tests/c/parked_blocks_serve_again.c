/* The last huge block freed on a CPU is parked: the next request of its length gets it, untouched, in a
 * child of fork, too; a trim and a request that finds no memory take it out. */
#include "stats.h"
#include <string.h>

enum { MIB = 1 << 20, BLOCK = 20 * MIB };

static void *parked(void) {
    char *block = malloc(BLOCK);
    CHECK(block);
    memset(block, 1, BLOCK);
    free(block);
    return block;
}

static void use_in_a_child(void *block) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char *mine = malloc(BLOCK), *other = malloc(BLOCK);
        CHECK(mine == block && other && other != mine);
        memset(other, 3, BLOCK);
        memset(mine, 2, BLOCK);
        free(other);
        free(mine);
        CHECK(allocate_each_kind() == 0);
        _exit(0);
    }
    CHECK(reap(child, 20) == 0);
    char *mine = malloc(BLOCK);
    CHECK(mine == block && mine[0] == 1 && mine[BLOCK - 1] == 1);
    free(mine);
}

int main(void) {
    move_to(0);
    const long before = resident_kib();
    void *block = parked();
    const long resident = statistic("compounds_resident");
    if (resident * 2 < BLOCK / MIB) FAIL("%ld resident compounds", resident);
    for (int i = 0; i < 1000; i++) {
        char *again = malloc(BLOCK - i);
        CHECK(again == block && malloc_usable_size(again) >= (size_t)BLOCK - i);
        free(again);
    }
    use_in_a_child(block);
    unsigned char *zeros = calloc(1, BLOCK);
    CHECK(zeros && !zeros[0] && !memcmp(zeros, zeros + 1, BLOCK - 1));
    free(zeros);
    parked();
    malloc_trim(0);
    CHECK(statistic("compounds_resident") == 0);
    if (resident_kib() - before > 4 * 1024) FAIL("%ld KiB stay", resident_kib() - before);
    return 0;
}
