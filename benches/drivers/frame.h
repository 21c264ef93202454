/*
 * What the drivers share: the clock, chunks, one line of JSON a row, the CPU to run on, the main loop.
 *
 * A driver is started as `driver CPU CHUNKS DRAINS_PER_SECOND DRY ROW...` by the bench.  It calls
 * malloc and free through the PLT, as programs do.  Its last line says whose malloc was measured and
 * what disturbed the run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    CHUNK_NS = 20000,     /* shortest chunk worth timing: 1000 times the clock's own cost */
    LONGEST_NS = 120000,  /* a row ends after so much time a chunk ... */
    FEWEST_CHUNKS = 15,   /* ... but not with fewer chunks than a quartile wants */
    MAX_CHUNKS = 100000,
    SIZES = 8192,         /* length of the table of mixed sizes */
};

struct row {
    const char *name;
    void (*measure)(const struct row *row, int chunks);
    void (*run)(size_t size, long ops); /* for `measure_chunks` */
    size_t size;
    long unit; /* operations come in multiples of this */
};

static int home_cpu;          /* the CPU that the driver is pinned to */
static cpu_set_t other_cpus;  /* the CPUs that it may use besides */
static unsigned short mixed_sizes[SIZES];
static double chunk_value[MAX_CHUNKS];

static inline void fail(const char *why)
{
    fprintf(stderr, "driver: %s\n", why);
    exit(2);
}

static inline unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline double now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Written once, as any caller would, so that no compiler removes it. */
static inline void *touch(void *p)
{
    *(volatile char *)p = 1;
    return p;
}

static inline void *touched(size_t size)
{
    return touch(malloc(size));
}

/* Half of the sizes are below 256 B and none is above 1 KiB: the square of a uniform number. */
static inline void fill_mixed_sizes(void)
{
    unsigned state = 1;
    for (int i = 0; i < SIZES; i++) {
        unsigned r = next_random(&state) % 1000;
        mixed_sizes[i] = (unsigned short)(16 + r * r / 1000);
    }
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints a row from the first `chunks` of `chunk_value`. */
static inline void print_row(const struct row *row, int chunks)
{
    double sum = 0;
    for (int i = 0; i < chunks; i++)
        sum += chunk_value[i];
    qsort(chunk_value, (size_t)chunks, sizeof chunk_value[0], by_value);
    printf("{\"row\":\"%s\",\"min\":%.4f,\"p25\":%.4f,\"mean\":%.4f}\n", row->name, chunk_value[0],
           chunk_value[chunks / 4], sum / chunks);
}

/* Doubles the operations of a chunk until the best of three takes CHUNK_NS; warms up as it goes. */
static inline long chunk_ops(const struct row *row)
{
    for (long ops = row->unit;; ops *= 2) {
        double best = 1e18;
        row->run(row->size, ops);
        for (int i = 0; i < 3; i++) {
            double start = now_ns();
            row->run(row->size, ops);
            double took = now_ns() - start;
            best = took < best ? took : best;
        }
        if (best >= CHUNK_NS)
            return ops;
    }
}

/* One thread: nanoseconds an operation, wall clock. */
static inline void measure_chunks(const struct row *row, int chunks)
{
    long ops = chunk_ops(row);
    double began = now_ns(), start = began;
    int c = 0;
    while (c < chunks && (c < FEWEST_CHUNKS || start - began < (double)chunks * LONGEST_NS)) {
        start = now_ns();
        row->run(row->size, ops);
        chunk_value[c++] = (now_ns() - start) / (double)ops;
    }
    print_row(row, c);
}

#include "drain.h"

/* Pins to `cpu`, or to the highest allowed CPU (the lowest takes most interrupts) when below 0. */
static inline void pin(int cpu)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof other_cpus, &other_cpus) != 0)
        fail("sched_getaffinity failed: more CPUs than cpu_set_t holds");
    if (cpu < 0)
        for (cpu = CPU_SETSIZE - 1; !CPU_ISSET(cpu, &other_cpus);)
            cpu--;
    CPU_ZERO(&mine);
    CPU_SET((size_t)cpu, &mine);
    if (sched_setaffinity(0, sizeof mine, &mine) != 0)
        fail("cannot run on that CPU: choose an allowed one with --cpu");
    CPU_CLR((size_t)cpu, &other_cpus);
    home_cpu = cpu;
}

/* The highest allowed CPU besides `home_cpu`; that one itself where there is no other. */
static inline int second_cpu(void)
{
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
        if (CPU_ISSET(cpu, &other_cpus))
            return cpu;
    return home_cpu;
}

static inline void print_summary(void)
{
    Dl_info info = {0};
    struct rusage usage;
    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info);
    getrusage(RUSAGE_THREAD, &usage);
    printf("{\"malloc\":\"%s\",\"cpu\":%d,\"involuntary\":%ld,\"drains\":%ld,\"refused\":%ld}\n",
           info.dli_fname ? info.dli_fname : "", home_cpu, usage.ru_nivcsw, drainer.calls,
           drainer.refused);
}

static inline void measure_named(const struct row *rows, size_t count, const char *name, int chunks)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            rows[i].measure(&rows[i], chunks);
            return;
        }
    }
    fail("no such row: src/rows.rs and the driver's table must agree");
}

static inline int run_driver(int argc, char **argv, const struct row *rows, size_t count)
{
    static char out[1 << 16]; /* stdout allocates no buffer of its own */
    if (argc < 5)
        fail("usage: DRIVER CPU CHUNKS DRAINS_PER_SECOND DRY ROW... (started by `bench`)");
    setvbuf(stdout, out, _IOFBF, sizeof out);
    int chunks = atoi(argv[2]);
    if (chunks < 1 || chunks > MAX_CHUNKS)
        fail("CHUNKS is 1 to 100000");
    pin(atoi(argv[1]));
    fill_mixed_sizes();
    start_drainer(atol(argv[3]), atoi(argv[4]));
    for (int i = 5; i < argc; i++)
        measure_named(rows, count, argv[i], chunks);
    stop_drainer();
    print_summary();
    return 0;
}
