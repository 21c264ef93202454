/* Threads on all CPUs allocate and hand blocks to each other to free, while others change the policy, drain, move
 * threads from CPU to CPU and fork: no block is handed out twice, and none is lost.  Arguments: seconds, threads. */
#include "check.h"
#include "homenode.h"

__typeof__(hn_set_policy) *set_policy;
__typeof__(hn_alloc_onnode) *alloc_onnode;
__typeof__(hn_drain_cpu) *drain_cpu;

enum { SLOTS = 4096 };
struct block {
    uint64_t mark, size;
};
static struct block *slots[SLOTS];
static volatile int stops;
static double seconds = 2;

static void check_and_free(struct block *block) {
    if (!block) return;
    uint64_t size = block->size;
    const unsigned char *end = (const unsigned char *)block + size;
    if (block->mark != ((uintptr_t)block ^ size) || end[-1] != (unsigned char)size) FAIL("a live block changed");
    block->mark = 0;
    free(block);
}

static void *work(void *number) {
    uint32_t x = (uint32_t)(uintptr_t)number * 7919u + 1u;
    for (unsigned long i = 0; !stops; i++) {
        uint32_t r = next_random(&x) >> 4;
        if (i % 4096 == 0) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(r % (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), &set);
            sched_setaffinity(0, sizeof set, &set);
        }
        size_t size = 24 + (r % 997 ? r % 3000 : r % (3 << 20));
        struct block *block = r % 61 ? malloc(size) : alloc_onnode(size, (int)(r / 61 % 4));
        if (!block) FAIL("no memory for %zu bytes", size);
        ((unsigned char *)block)[size - 1] = (unsigned char)size;
        block->size = size;
        block->mark = (uintptr_t)block ^ size;
        check_and_free(__atomic_exchange_n(&slots[(r >> 8) % SLOTS], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void *change(void *unused) {
    static const char *const policies[] = {"local",          "bind:1",         "interleave:0-3", "preferred:2,3",
                                           "weighted:0*3,2", "interleave:1,2", "bind:0,3"};
    uint32_t x = 1;
    while (!stops) {
        uint32_t r = next_random(&x) >> 4;
        CHECK(!set_policy(policies[r % (sizeof policies / sizeof *policies)], NULL));
        drain_cpu(r >> 8 & 1, (int)(r >> 9) % 3, NULL);
        if (r % 16 == 0) {
            pid_t child = fork();
            if (!child) _exit(allocate_each_kind());
            CHECK(reap(child, 20) == 0);
        }
        pause_us(500);
    }
    return unused;
}

int main(int argc, char **argv) {
    set_policy = dlsym(RTLD_DEFAULT, "hn_set_policy");
    alloc_onnode = dlsym(RTLD_DEFAULT, "hn_alloc_onnode");
    drain_cpu = dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    CHECK(set_policy && alloc_onnode && drain_cpu);
    if (argc > 1) seconds = atof(argv[1]);
    int threads = argc > 2 ? atoi(argv[2]) : 6;
    pthread_t all[64], changer;
    CHECK(threads < 64);
    for (int i = 0; i < threads; i++) CHECK(!pthread_create(&all[i], NULL, work, (void *)(uintptr_t)i));
    CHECK(!pthread_create(&changer, NULL, change, NULL));
    for (double end = seconds_now() + seconds; seconds_now() < end;) pause_us(10000);
    stops = 1;
    for (int i = 0; i < threads; i++) CHECK(!pthread_join(all[i], NULL));
    CHECK(!pthread_join(changer, NULL));
    for (int i = 0; i < SLOTS; i++) check_and_free(slots[i]);
    /* Nothing is out any more but what libc holds: all went home. */
    CHECK(!set_policy("local", NULL));
    malloc_trim(0);
    struct mallinfo2 left = mallinfo2();
    if (left.uordblks > 1 << 20) FAIL("%zu bytes did not come home", left.uordblks);
    return 0;
}
