/*
 * Measures malloc and free called through the PLT, on one CPU, in many short chunks.
 *
 * Prints one JSON line a row: nanoseconds per malloc+free, as the minimum, the lower quartile and
 * the mean over all chunks. A last line says whose malloc was measured and what disturbed the run.
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
    BATCH = 1000,          /* objects allocated before the first is freed */
    LIVE = 4096,           /* objects alive in the mixed row */
    SIZES = 8192,          /* length of the table of mixed sizes */
    CHUNK_NS = 20000,      /* shortest chunk worth timing: 1000 times the clock's own cost */
    MAX_CHUNKS = 100000,
    HN_DRAIN_FENCE = 1,
};

static void *slots[LIVE];
static unsigned short order[BATCH];
static unsigned short mixed_sizes[SIZES];
static double chunk_ns[MAX_CHUNKS];
static unsigned random_state = 1;

static unsigned next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Each allocation is written once, as any caller would, so that no compiler removes it. */
static inline void *touched(size_t size)
{
    char *p = malloc(size);
    *(volatile char *)p = 1;
    return p;
}

static __attribute__((noinline)) void pair(size_t size, long ops)
{
    for (long i = 0; i < ops; i++)
        free(touched(size));
}

static inline void fill(size_t size)
{
    for (int i = 0; i < BATCH; i++)
        slots[i] = touched(size);
}

static __attribute__((noinline)) void lifo(size_t size, long ops)
{
    for (; ops > 0; ops -= BATCH) {
        fill(size);
        for (int i = BATCH - 1; i >= 0; i--)
            free(slots[i]);
    }
}

static __attribute__((noinline)) void fifo(size_t size, long ops)
{
    for (; ops > 0; ops -= BATCH) {
        fill(size);
        for (int i = 0; i < BATCH; i++)
            free(slots[i]);
    }
}

static __attribute__((noinline)) void shuffled(size_t size, long ops)
{
    for (; ops > 0; ops -= BATCH) {
        fill(size);
        for (int i = 0; i < BATCH; i++)
            free(slots[order[i]]);
    }
}

/* The batch rows leave freed addresses behind. */
static void forget_slots(void)
{
    memset(slots, 0, sizeof slots);
}

/* Replaces a random one of LIVE objects by one of another size. */
static __attribute__((noinline)) void mixed(size_t unused, long ops)
{
    (void)unused;
    for (long i = 0; i < ops; i++) {
        unsigned r = next_random();
        void **slot = &slots[r % LIVE];
        free(*slot);
        *slot = touched(mixed_sizes[(r >> 11) % SIZES]);
    }
}

static const struct row {
    const char *name;
    void (*run)(size_t size, long ops);
    size_t size;
    long unit; /* operations come in multiples of this */
} rows[] = {
    {"pair 16 B", pair, 16, 64},
    {"pair 64 B", pair, 64, 64},
    {"pair 256 B", pair, 256, 64},
    {"pair 1 KiB", pair, 1024, 64},
    {"pair 8 KiB", pair, 8 << 10, 8},
    {"pair 64 KiB", pair, 64 << 10, 8},
    {"pair 256 KiB", pair, 256 << 10, 8},
    {"lifo 64 B", lifo, 64, BATCH},
    {"fifo 64 B", fifo, 64, BATCH},
    {"random 64 B", shuffled, 64, BATCH},
    {"lifo 1 KiB", lifo, 1024, BATCH},
    {"fifo 1 KiB", fifo, 1024, BATCH},
    {"random 1 KiB", shuffled, 1024, BATCH},
    {"mixed", mixed, 0, LIVE},
};

/* Half of the sizes are below 256 B and none is above 1 KiB: the square of a uniform number. */
static void prepare(void)
{
    for (int i = 0; i < BATCH; i++)
        order[i] = (unsigned short)i;
    for (int i = BATCH - 1; i > 0; i--) {
        int j = (int)(next_random() % (unsigned)(i + 1));
        unsigned short kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int i = 0; i < SIZES; i++) {
        unsigned r = next_random() % 1000;
        mixed_sizes[i] = (unsigned short)(16 + r * r / 1000);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Doubles the operations of a chunk until the best of three takes CHUNK_NS; warms up as it goes. */
static long chunk_ops(const struct row *row)
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

static void measure(const struct row *row, int chunks)
{
    forget_slots();
    long ops = chunk_ops(row);
    double sum = 0;
    for (int c = 0; c < chunks; c++) {
        double start = now_ns();
        row->run(row->size, ops);
        chunk_ns[c] = (now_ns() - start) / (double)ops;
        sum += chunk_ns[c];
    }
    qsort(chunk_ns, (size_t)chunks, sizeof chunk_ns[0], by_value);
    printf("{\"row\":\"%s\",\"min\":%.4f,\"p25\":%.4f,\"mean\":%.4f,\"chunks\":%d,\"ops\":%ld}\n",
           row->name, chunk_ns[0], chunk_ns[chunks / 4], sum / chunks, chunks, ops);
}

static struct drainer {
    pthread_t thread;
    int (*drain)(unsigned cpu, int how, size_t *objects);
    unsigned cpu;
    long per_second;
    bool dry; /* wake up as often, but do not drain: what the wake-ups alone cost */
    volatile bool stop;
    long calls;
    long refused;
} drainer;

static void *drain_often(void *unused)
{
    (void)unused;
    long period = 1000000000L / drainer.per_second;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!drainer.stop) {
        next.tv_nsec += period;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        if (drainer.dry)
            continue;
        drainer.calls++;
        drainer.refused += drainer.drain(drainer.cpu, HN_DRAIN_FENCE, NULL) < 0;
    }
    return NULL;
}

static void fail(const char *why)
{
    fprintf(stderr, "pair: %s\n", why);
    exit(2);
}

/* Pins to `cpu`, or to the highest allowed CPU (the lowest takes most interrupts) when below 0. */
static unsigned pin(int cpu, cpu_set_t *others)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof *others, others) != 0)
        fail("sched_getaffinity failed: more CPUs than cpu_set_t holds");
    if (cpu < 0)
        for (cpu = CPU_SETSIZE - 1; !CPU_ISSET(cpu, others);)
            cpu--;
    CPU_ZERO(&mine);
    CPU_SET((size_t)cpu, &mine);
    if (sched_setaffinity(0, sizeof mine, &mine) != 0)
        fail("cannot run on that CPU: choose an allowed one with --cpu");
    CPU_CLR((size_t)cpu, others);
    return (unsigned)cpu;
}

static void start_drainer(const cpu_set_t *others)
{
    pthread_attr_t attr;
    if (CPU_COUNT(others) == 0)
        fail("--drain needs a second CPU for the draining thread");
    *(void **)&drainer.drain = dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    if (!drainer.drain)
        fail("the preloaded library has no hn_drain_cpu: --drain measures homenode only");
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof *others, others);
    if (pthread_create(&drainer.thread, &attr, drain_often, NULL) != 0)
        fail("cannot start the draining thread");
}

static void print_summary(unsigned cpu)
{
    Dl_info info = {0};
    struct rusage usage;
    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info);
    getrusage(RUSAGE_THREAD, &usage);
    printf("{\"malloc\":\"%s\",\"cpu\":%u,\"involuntary\":%ld,\"drains\":%ld,\"refused\":%ld}\n",
           info.dli_fname ? info.dli_fname : "", cpu, usage.ru_nivcsw, drainer.calls,
           drainer.refused);
}

/* pair CPU CHUNKS DRAINS_PER_SECOND DRY ROWS: ROWS is a part of the names to run, "" for all. */
int main(int argc, char **argv)
{
    static char out[1 << 16];
    cpu_set_t others;
    if (argc != 6)
        fail("usage: pair CPU CHUNKS DRAINS_PER_SECOND DRY ROWS (started by `bench pair`)");
    setvbuf(stdout, out, _IOFBF, sizeof out);
    int chunks = atoi(argv[2]);
    if (chunks < 1 || chunks > MAX_CHUNKS)
        fail("CHUNKS is 1 to 100000");
    unsigned cpu = pin(atoi(argv[1]), &others);
    drainer.cpu = cpu;
    drainer.per_second = atol(argv[3]);
    drainer.dry = atoi(argv[4]);
    prepare();
    if (drainer.per_second > 0)
        start_drainer(&others);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(rows[i].name, argv[5]))
            measure(&rows[i], chunks);
    if (drainer.per_second > 0) {
        drainer.stop = true;
        pthread_join(drainer.thread, NULL);
    }
    print_summary(cpu);
    return 0;
}
