/* A child of vfork drains and trims while threads of its parent use the very CPU that their memory
 * names: it runs in the parent's memory with the parent's CPU number, and must not take that for a
 * proof. No object is handed out twice. */
#include "stats.h"

enum { THREADS = 2, SLOTS = 64, DRAINS = 300, WAYS = 7 };
static volatile int stopping;

static void *use_cpu_1(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed;
    uintptr_t *held[SLOTS] = {0};
    move_to(1);
    while (!stopping) {
        const unsigned k = next_random(&x) >> 16 & (SLOTS - 1);
        if (!held[k]) {
            CHECK((held[k] = malloc(64)));
            held[k][0] = (uintptr_t)held[k], held[k][1] = (uintptr_t)&held[k];
            continue;
        }
        if (held[k][0] != (uintptr_t)held[k] || held[k][1] != (uintptr_t)&held[k])
            FAIL("%p has two owners", (void *)held[k]);
        held[k][0] = 0;
        free(held[k]);
        held[k] = NULL;
    }
    for (int k = 0; k < SLOTS; k++) free(held[k]);
    return NULL;
}

static int (*drain_all)(int, size_t *);

static void drain(int way) {
    size_t objects = 0;
    if (way == WAYS - 1) malloc_trim(0);
    else if (way > 2) drain_all(way - 3, &objects);
    else drain_cpu(1, way, &objects);
}

/* Not inlined: a vfork child shares its parent's frame. */
__attribute__((noinline)) static pid_t spawn_and_drain(int way) {
    pid_t child = vfork();
    if (child == 0) {
        move_to(0);
        for (int i = 0; i < DRAINS; i++) drain(way);
        _exit(0);
    }
    return child;
}

int main(void) {
    *(void **)&drain_all = dlsym(RTLD_DEFAULT, "hn_drain_all");
    if (!drain_all && !homenode_required()) SKIP("not on homenode");
    CHECK(drain_all);
    move_to(0);
    move_to(1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, use_cpu_1, (void *)(uintptr_t)(i + 1)) == 0);
    const double end = seconds_now() + 2;
    for (int i = 0; seconds_now() < end; i++) {
        const pid_t child = spawn_and_drain(i % WAYS);
        CHECK(child > 0);
        const int status = reap(child, 10);
        if (status) FAIL("the child of way %d: status %#x", i % WAYS, (unsigned)status);
    }
    stopping = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(drain_everything() == 0);
    CHECK(allocate_each_kind() == 0);
    CHECK(slow_paths_of_pairs(10000) < 1000);
    return 0;
}
