/* What the heap has handed out when every cache is empty. Two stocks of one program are equal unless
 * something was lost in between, however much of it was in use. */
#ifndef STOCK_H
#define STOCK_H
#include "stats.h"
#include <sys/stat.h>

/* Signal handlers keep the compound that they are cutting blocks from. */
enum { COMPOUNDS_OF_HANDLERS = 1 };

struct stock { long runs, compounds; };

static inline void *end_at_once(void *unused) { return unused; }

static inline long tasks(void) {
    struct stat folder;
    CHECK(stat("/proc/self/task", &folder) == 0);
    return (long)folder.st_nlink;
}

/* Of a process with one thread; qemu-user has one more of its own. */
static long tasks_at_start;
__attribute__((constructor)) static void count_tasks_at_start(void) { tasks_at_start = tasks(); }

/* Waits until this thread is alone: one that has ended may still be on its way out. */
static inline void await_the_last_thread(void) {
    for (const double limit = seconds_now() + 10; tasks() > tasks_at_start; pause_us(500))
        if (seconds_now() > limit) FAIL("%ld threads do not end", tasks() - tasks_at_start);
}

/* libc caches stacks, each with a block of malloc's: one beyond the cache's 40 MiB evicts all. */
static inline void evict_cached_stacks(void) {
    pthread_attr_t large;
    pthread_t thread;
    CHECK(!pthread_attr_init(&large) && !pthread_attr_setstacksize(&large, 64 << 20));
    CHECK(!pthread_create(&thread, &large, end_at_once, NULL) && !pthread_join(thread, NULL));
    pthread_attr_destroy(&large);
}

static inline struct stock take_stock(void) {
    await_the_last_thread();
    evict_cached_stacks();
    CHECK(drain_everything() == 0);
    malloc_trim(0);
    return (struct stock){statistic("runs"), statistic("compounds") - statistic("compounds_free")};
}

/* True, and says so, if more is out than was. */
static inline int has_lost(struct stock before) {
    const struct stock after = take_stock();
    const long runs = after.runs - before.runs, compounds = after.compounds - before.compounds;
    if (runs <= 0 && compounds <= COMPOUNDS_OF_HANDLERS) return 0;
    dprintf(2, "lost: %ld runs, %ld compounds\n", runs, compounds);
    return 1;
}
#endif
