/* hn_drain_cpu brings a CPU's cached objects home, fenced or quiet; hn_drain_all those of all CPUs;
 * bad arguments are refused; version and statistics answer. */
#include "check.h"

enum { AUTO, FENCE, QUIET, OBJECTS = 500 };
static int (*drain_cpu)(unsigned, int, size_t *);
static int (*drain_all)(int, size_t *);

static void fill_the_cache(void) {
    void *held[OBJECTS];
    for (int i = 0; i < OBJECTS; i++) CHECK((held[i] = malloc(64)));
    for (int i = 0; i < OBJECTS; i++) free(held[i]);
}

static void pin_to(unsigned cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

int main(void) {
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "hn_version");
    if (!version && !homenode_required()) SKIP("not on homenode");
    *(void **)&drain_cpu = dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    *(void **)&drain_all = dlsym(RTLD_DEFAULT, "hn_drain_all");
    size_t (*json)(char *, size_t) = (size_t(*)(char *, size_t))dlsym(RTLD_DEFAULT, "hn_stats_json");
    int (*print)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "hn_print_stats");
    CHECK(version && version() && *version() && drain_cpu && drain_all && json && print);
    static char statistics[65536];
    CHECK(json(statistics, sizeof statistics) < sizeof statistics);
    const int has_caches = !strstr(statistics, "\"rseq\":\"none\""); /* without rseq there are none to drain */

    for (unsigned cpu = 0; cpu < 2; cpu++)
        for (int how = AUTO; how <= QUIET; how++) {
            pin_to(cpu);
            fill_the_cache();
            pin_to(1 - cpu); /* a drain comes from another CPU; the victim's CPU is idle */
            size_t objects = 0;
            int got, tries = 0;
            while ((got = drain_cpu(cpu, how, &objects)) == 1 && ++tries < 2000) pause_us(500);
            if (got != 0) FAIL("drain of CPU %u by way %d: %d after %d tries", cpu, how, got, tries);
            if (objects == 0 && has_caches) FAIL("drain of CPU %u by way %d found nothing", cpu, how);
            CHECK(allocate_each_kind() == 0);
        }
    fill_the_cache();
    size_t objects = 0;
    CHECK(drain_all(FENCE, &objects) == 0);
    CHECK(objects > 0 || !has_caches);
    CHECK(drain_all(AUTO, NULL) >= 0);

    errno = 0;
    CHECK(drain_cpu(0, 17, &objects) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(drain_cpu(1u << 30, FENCE, &objects) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(drain_all(-1, &objects) == -1 && errno == EINVAL);

    char text[65536] = "", small[8] = "1234567";
    size_t needed = json(NULL, 0);
    CHECK(needed > 2 && needed < sizeof text);
    CHECK(json(text, sizeof text) > 2 && text[0] == '{' && strchr(text, '}'));
    CHECK(json(small, 4) > 4 && memcmp(small + 4, "567", 4) == 0);
    int ends[2];
    CHECK(pipe(ends) == 0 && print(ends[1]) == 0);
    CHECK(read(ends[0], text, sizeof text) > 20);
    return 0;
}
