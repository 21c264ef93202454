/* What the library says of itself, found at run time so that a plain program links. */
#ifndef STATS_H
#define STATS_H
#include "check.h"

/* The statistics as JSON, until the next call. */
static inline const char *statistics(void) {
    size_t (*json)(char *, size_t);
    *(void **)&json = dlsym(RTLD_DEFAULT, "hn_stats_json");
    if (!json && !homenode_required()) SKIP("not on homenode");
    static char text[65536];
    CHECK(json && json(text, sizeof text) < sizeof text);
    return text;
}

/* A number of the statistics, by its name. */
static inline long statistic(const char *name) {
    static char key[64];
    const char *text = statistics();
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(text, key);
    if (!found) FAIL("no %s in %s", key, text);
    return atol(found + strlen(key));
}

/* True where objects are cached by CPU; without rseq every request is a slow path. */
static inline int has_caches(void) { return statistic("cpus") > 0; }

/* How many of `count` pairs of malloc and free left the fast path; 0 where there is none. */
static inline long slow_paths_of_pairs(int count) {
    static const char *const counters[] = {"misses", "refills", "returned"};
    for (int i = 0; i < 100; i++) free(malloc(64));
    if (!has_caches()) return 0;
    long before = 0, after = 0;
    for (int i = 0; i < 3; i++) before += statistic(counters[i]);
    for (int i = 0; i < count; i++) {
        void *volatile p = malloc(64);
        free(p);
    }
    for (int i = 0; i < 3; i++) after += statistic(counters[i]);
    return after - before;
}

enum { DRAIN_AUTO, DRAIN_FENCE, DRAIN_QUIET, DRAIN_PENDING = 1 };

static inline int drain_cpu(unsigned cpu, int how, size_t *objects) {
    int (*drain)(unsigned, int, size_t *);
    *(void **)&drain = dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    if (!drain && !homenode_required()) SKIP("not on homenode");
    CHECK(drain);
    return drain(cpu, how, objects);
}

/* Drains all CPUs, and asks again while a drain is pending, for two seconds at most. */
static inline int drain_everything(void) {
    int (*drain)(int, size_t *);
    *(void **)&drain = dlsym(RTLD_DEFAULT, "hn_drain_all");
    if (!drain && !homenode_required()) SKIP("not on homenode");
    CHECK(drain);
    int got = DRAIN_PENDING;
    for (int i = 0; i < 2000 && (got = drain(DRAIN_AUTO, NULL)) == DRAIN_PENDING; i++) pause_us(1000);
    return got;
}

static inline void move_to(unsigned cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) SKIP("no such CPU");
}
#endif
