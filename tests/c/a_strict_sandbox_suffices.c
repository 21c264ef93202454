/* A sandbox entered after the start allows the calls that give memory, futex, and this program's end:
 * blocks are allocated, grown, and freed by other threads. argv: "refused" (others get EPERM; drains and
 * trims are tried, too) or "killed". */
#include "seccomp.h"

enum { THREADS = 2, OBJECTS = 4000, ROUNDS = 4 };

static pthread_barrier_t given, freed;
static void *objects[THREADS][OBJECTS];

static size_t size_of(int i) { return i % 100 == 0 ? 3 << 20 : i % 10 == 0 ? 50000 : 16 + i % 2000; }

static void *work(void *number) {
    /* A thread that the kernel does not know of yet asks for that at its first miss. */
    free(malloc(100));
    for (;;) {
        pthread_barrier_wait(&given);
        for (int i = 0; i < OBJECTS; i++) free(objects[(uintptr_t)number][i]);
        CHECK(allocate_each_kind() == 0);
        pthread_barrier_wait(&freed);
    }
    return NULL;
}

static void grow_two(void) {
    size_t length = 1 << 20;
    unsigned char *blocks[2] = {(unsigned char *)malloc(length), (unsigned char *)malloc(length)};
    for (; length < (size_t)64 << 20; length *= 2)
        for (int i = 0; i < 2; i++) {
            blocks[i][length - 1] = 7;
            CHECK((blocks[i] = (unsigned char *)realloc(blocks[i], 2 * length)));
            CHECK(blocks[i][length - 1] == 7);
        }
    for (int i = 0; i < 2; i++) free(blocks[i]);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    static const int calls[] = {SYS_mmap,  SYS_munmap, SYS_mprotect, SYS_madvise,
                                SYS_mremap, SYS_futex,  SYS_exit,     SYS_exit_group,
                                SYS_write};
    const int refused = !strcmp(argv[1], "refused");
    pthread_t threads[THREADS];
    pthread_barrier_init(&given, NULL, THREADS + 1);
    pthread_barrier_init(&freed, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    free(malloc(100));
    /* Each thread has had its first miss. */
    memset(objects, 0, sizeof objects);
    pthread_barrier_wait(&given);
    pthread_barrier_wait(&freed);
    allow_only(calls, sizeof calls / sizeof *calls,
               refused ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS);
    for (int round = 0; round < ROUNDS; round++) {
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < OBJECTS; i++) {
                CHECK((objects[t][i] = i % 7 ? malloc(size_of(i)) : calloc(1, size_of(i))));
                mark_edges(objects[t][i], size_of(i), 1);
            }
        pthread_barrier_wait(&given);
        grow_two();
        pthread_barrier_wait(&freed);
        if (refused) malloc_trim(0);
    }
    _exit(0);
}
