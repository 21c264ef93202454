/* Where a program may make but a few calls, and is killed for any other (printing a failure needs one, too), a
 * request that finds no memory still gets what other CPUs have cached: at once while there is one thread,
 * otherwise once the CPU has come to a slow path. Needs a small slice. argv: "alone", or "idle" or "busy" for
 * what a second thread does meanwhile. */
#include "seccomp.h"
#include "stats.h"

enum { SMALL = 3000, CACHED = 100 };
static const char *what;
static pthread_barrier_t step;
static volatile int stops;

static void fill_the_cache(void) {
    static void *held[CACHED];
    for (int i = 0; i < CACHED; i++) CHECK(held[i] = malloc(SMALL));
    for (int i = 0; i < CACHED; i++) free(held[i]);
}

/* Takes all memory, in a list through the blocks themselves; how many. */
static int fill_memory(void **last) {
    int count = 0;
    for (void **block; (block = (void **)malloc(SMALL)); count++, *last = block) *block = *last;
    return count;
}

static void empty_memory(void *last) {
    for (void *next; last; last = next) next = *(void **)last, free(last);
}

static void *work(void *unused) {
    move_to(1);
    fill_the_cache();
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    /* Others may have it all. */
    while (!strcmp(what, "busy") && !stops) free(malloc(SMALL));
    free(malloc(16));
    pthread_barrier_wait(&step);
    /* Its end would ask for more than this sandbox allows. */
    for (;;) pthread_barrier_wait(&step);
    return unused;
}

static void enter_sandbox(void) {
    static const int calls[] = {SYS_mmap,   SYS_munmap, SYS_mprotect, SYS_madvise,   SYS_mremap,
                                SYS_futex,  SYS_exit,   SYS_write,    SYS_exit_group};
    allow_only(calls, sizeof calls / sizeof *calls, SECCOMP_RET_KILL_PROCESS);
}

static void run_alone(void) {
    move_to(1);
    fill_the_cache();
    move_to(0);
    free(malloc(16));
    enter_sandbox();
    for (int round = 0; round < 3; round++) {
        void *last = NULL;
        CHECK(fill_memory(&last) > 5 * CACHED);
        CHECK(mallinfo2().smblks == 0);
        CHECK(!malloc(5 << 20) && !calloc(1, 20000) && !malloc((size_t)1 << 40));
        empty_memory(last);
    }
}

static void run_beside_a_thread(void) {
    pthread_t thread;
    void *last = NULL;
    pthread_barrier_init(&step, NULL, 2);
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    move_to(0);
    free(malloc(16));
    pthread_barrier_wait(&step);
    enter_sandbox();
    if (!strcmp(what, "busy")) pthread_barrier_wait(&step);
    int count = fill_memory(&last);
    CHECK(count > 5 * CACHED);
    if (!strcmp(what, "idle")) pthread_barrier_wait(&step);
    stops = 1;
    pthread_barrier_wait(&step);
    /* The other CPU has answered. */
    int more = fill_memory(&last);
    if (!strcmp(what, "idle") && !getenv("HOMENODE_RSEQ") && more < 10) FAIL("%d more", more);
    empty_memory(last);
    CHECK(allocate_each_kind() == 0);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    what = argv[1];
    if (!strcmp(what, "alone"))
        run_alone();
    else
        run_beside_a_thread();
    _exit(0);
}
