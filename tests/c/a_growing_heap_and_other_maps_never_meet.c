/* While the heap grows, threads map memory of their own, at any place and where the heap is about to grow,
 * and children are forked: no map is taken for the heap's, and no block lies in a map. The runner sets a
 * limit before the start, or the program sets one itself. argv: MiB of it, "before" or "after". */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { GROWERS = 2, MAPPERS = 2, FORKS = 30, HELD = 4096, MIB = 1 << 20 };
static volatile int stops;
static void *volatile newest;

static void check_and_free(char **chain, size_t bytes) {
    while (chain) {
        char **next = (char **)*chain;
        CHECK(((unsigned char *)chain)[bytes - 1] == 7);
        free(chain);
        chain = next;
    }
}

/* Takes blocks until there are no more, or 16 MiB are left to others; frees them; again. */
static void *grow(void *budget) {
    const size_t most = (size_t)(uintptr_t)budget;
    for (size_t bytes = 30000; !stops; bytes = bytes * 7 % 3999971 + 64) {
        char **chain = NULL, **block;
        for (size_t had = 0; had < most && !stops && (block = (char **)malloc(bytes)); had += bytes) {
            ((unsigned char *)block)[bytes - 1] = 7;
            *block = (char *)chain;
            chain = block;
            newest = block;
        }
        check_and_free(chain, bytes);
    }
    return NULL;
}

/* Maps a few pages, writes all over them, and unmaps them later. */
static void *map(void *seed) {
    enum { MAPS = 16 };
    uint32_t x = (uint32_t)(uintptr_t)seed;
    unsigned char *maps[MAPS] = {0};
    size_t sizes[MAPS] = {0};
    for (unsigned turn = 1; !stops; turn++) {
        unsigned at = (next_random(&x) >> 8) % MAPS;
        for (size_t i = 0; i < sizes[at]; i += 4096) CHECK(maps[at][i] == at + 1);
        if (sizes[at]) CHECK(munmap(maps[at], sizes[at]) == 0);
        sizes[at] = (size_t)(1 + (next_random(&x) >> 8) % 64) * 4096;
        /* A hint that is not free is not obeyed. */
        uintptr_t near = (uintptr_t)newest + (uintptr_t)((next_random(&x) >> 8) % 256) * (MIB / 4);
        void *hint = turn % 2 ? (void *)(near & ~(uintptr_t)4095) : NULL;
        void *made = mmap(hint, sizes[at], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) {
            sizes[at] = 0;
            continue;
        }
        maps[at] = (unsigned char *)made;
        for (size_t i = 0; i < sizes[at]; i += 4096) {
            CHECK(maps[at][i] == 0);
            maps[at][i] = (unsigned char)(at + 1);
        }
    }
    return NULL;
}

/* A child uses what it has, and may be refused more where a parent's thread was growing the heap. */
static void use(void) {
    char **chain = NULL, **block;
    for (int i = 0; i < HELD && (block = (char **)malloc(20000)); i++) {
        ((unsigned char *)block)[19999] = 7;
        *block = (char *)chain;
        chain = block;
    }
    check_and_free(chain, 20000);
    _exit(0);
}

int main(int argc, char **argv) {
    CHECK(argc > 2);
    const size_t limit = (size_t)atol(argv[1]) * MIB;
    pthread_t threads[GROWERS + MAPPERS];
    if (!strcmp(argv[2], "after")) {
        CHECK(malloc(1));
        struct rlimit now = {limit, RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    }
    for (int i = 0; i < GROWERS + MAPPERS; i++) {
        void *argument = i < GROWERS ? (void *)(limit / 2 / GROWERS) : (void *)(uintptr_t)(i + 1);
        CHECK(pthread_create(&threads[i], NULL, i < GROWERS ? grow : map, argument) == 0);
    }
    for (int i = 0; i < FORKS; i++) {
        pause_us(10000);
        pid_t child = fork();
        if (child == 0) use();
        if (child < 0) continue;
        int status = reap(child, 60);
        if (status != 0) FAIL("child %d: %s %x", i, status == HUNG ? "hangs" : "status", (unsigned)status);
    }
    stops = 1;
    for (int i = 0; i < GROWERS + MAPPERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
