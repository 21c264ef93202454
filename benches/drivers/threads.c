/* Several threads: objects handed from one to another, many threads on two CPUs, threads that end. */
#include "frame.h"
#include <stdatomic.h>

enum {
    BATCH = 256,            /* objects handed over at once */
    BATCHES = 4,            /* batches between the producer and the consumer, at most */
    CHUNK_BATCHES = 16,     /* batches timed together ... */
    HANDED_CHUNKS = 60,     /* ... in so many chunks at most */
    SPINS = 200,            /* looks at the other side's counter before the CPU is given away */
    MOST_THREADS = 16,
    LIVE = 256,             /* objects alive in a thread */
    CHURN_CHUNKS = 10,      /* chunks of the rows with 2 and 16 threads ... */
    CHURN_OPS = 4000000,    /* ... each of so many replacements in all threads together */
    SHARED = 4096,          /* objects that all threads replace together ... */
    MOVES = 400,            /* chunks of the row of a thread that moves ... */
    MOVE_OPS = 4096,        /* ... each of so many replacements after one move */
    SHORT_CHUNKS = 50,      /* chunks of the row of threads that end ... */
    THREADS_CHUNK = 20,     /* ... each of so many threads, one after the other */
    THREAD_OBJECTS = 16,    /* objects that such a thread allocates and frees */
};

/* A ring of batches between two threads, its two counters on cache lines of their own. */
static struct {
    void *objects[BATCHES][BATCH];
    double consumer_ns[HANDED_CHUNKS]; /* time to free the batches of each chunk */
    _Alignas(128) atomic_long written;
    _Alignas(128) atomic_long freed;
} ring;

/* Starts a thread that runs on these two CPUs, which may be one. */
static void start_thread(pthread_t *thread, void *(*run)(void *), void *argument, int cpu, int other)
{
    pthread_attr_t attr;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    CPU_SET((size_t)other, &cpus);
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof cpus, &cpus);
    if (pthread_create(thread, &attr, run, argument) != 0)
        fail("cannot start a thread");
    pthread_attr_destroy(&attr);
}

/* Waits until `counter` is at least `wanted`. */
static void await(atomic_long *counter, long wanted)
{
    for (int spins = 1; atomic_load_explicit(counter, memory_order_acquire) < wanted; spins++) {
        if (spins % SPINS == 0)
            sched_yield();
        else
            __builtin_ia32_pause();
    }
}

/* Reads what it gets, as any consumer would, then frees it. */
static void free_batch(void **objects)
{
    for (int i = 0; i < BATCH; i++) {
        (void)*(volatile char *)objects[i];
        free(objects[i]);
    }
}

static void *consume(void *chunks)
{
    long batches = (long)(size_t)chunks * CHUNK_BATCHES;
    for (long batch = 0; batch < batches; batch++) {
        await(&ring.written, batch + 1);
        double start = now_ns();
        free_batch(ring.objects[batch % BATCHES]);
        ring.consumer_ns[batch / CHUNK_BATCHES] += now_ns() - start;
        atomic_store_explicit(&ring.freed, batch + 1, memory_order_release);
    }
    return NULL;
}

/* Nanoseconds an object, wall clock: the producer's time to allocate plus the consumer's to free.
 * Waiting for each other is not part of it, so that a thread that lost its CPU spoils one chunk only. */
static void measure_handed(const struct row *row, int chunks)
{
    pthread_t consumer;
    chunks = chunks < HANDED_CHUNKS ? chunks : HANDED_CHUNKS;
    memset(&ring, 0, sizeof ring);
    memset(chunk_value, 0, HANDED_CHUNKS * sizeof chunk_value[0]);
    start_thread(&consumer, consume, (void *)(size_t)chunks, second_cpu(), second_cpu());
    for (long batch = 0; batch < (long)chunks * CHUNK_BATCHES; batch++) {
        await(&ring.freed, batch + 1 - BATCHES);
        double start = now_ns();
        for (int i = 0; i < BATCH; i++)
            ring.objects[batch % BATCHES][i] = touched(row->size);
        chunk_value[batch / CHUNK_BATCHES] += now_ns() - start;
        atomic_store_explicit(&ring.written, batch + 1, memory_order_release);
    }
    pthread_join(consumer, NULL);
    for (int c = 0; c < chunks; c++)
        chunk_value[c] = (chunk_value[c] + ring.consumer_ns[c]) / (CHUNK_BATCHES * BATCH);
    print_row(row, chunks);
}

static struct churn {
    pthread_barrier_t barrier;
    long ops; /* of each thread in a chunk */
} churn;

/* Replaces a random one of LIVE objects by one of another size. */
static void replace(void **slots, unsigned *state, long ops)
{
    for (long i = 0; i < ops; i++) {
        unsigned r = next_random(state);
        void **slot = &slots[r % LIVE];
        free(*slot);
        *slot = touched(mixed_sizes[(r >> 11) % SIZES]);
    }
}

static void *churn_thread(void *seed)
{
    void *slots[LIVE] = {0};
    unsigned state = (unsigned)(size_t)seed;
    replace(slots, &state, 4 * LIVE);
    for (int chunk = 0; chunk < CHURN_CHUNKS; chunk++) {
        pthread_barrier_wait(&churn.barrier);
        replace(slots, &state, churn.ops);
        pthread_barrier_wait(&churn.barrier);
    }
    for (int i = 0; i < LIVE; i++)
        free(slots[i]);
    return NULL;
}

/* Nanoseconds of CPU time of the whole process, for one replacement; `size` counts the threads. */
static void measure_churn(const struct row *row, int unused)
{
    pthread_t threads[MOST_THREADS];
    (void)unused;
    churn.ops = CHURN_OPS / (long)row->size;
    pthread_barrier_init(&churn.barrier, NULL, (unsigned)row->size + 1);
    for (size_t i = 0; i < row->size; i++)
        start_thread(&threads[i], churn_thread, (void *)(i + 1), home_cpu, second_cpu());
    for (int c = 0; c < CHURN_CHUNKS; c++) {
        double start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        pthread_barrier_wait(&churn.barrier);
        pthread_barrier_wait(&churn.barrier);
        chunk_value[c] = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / CHURN_OPS;
    }
    for (size_t i = 0; i < row->size; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&churn.barrier);
    print_row(row, CHURN_CHUNKS);
}

static _Atomic(void *) shared[SHARED];

/* Replaces random objects that mostly another thread allocated. */
static void *exchange_thread(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;
    for (int chunk = 0; chunk < CHURN_CHUNKS; chunk++) {
        pthread_barrier_wait(&churn.barrier);
        for (long i = 0; i < churn.ops; i++) {
            unsigned r = next_random(&state);
            void *object = touched(mixed_sizes[(r >> 12) % SIZES]);
            free(atomic_exchange_explicit(&shared[r % SHARED], object, memory_order_acq_rel));
        }
        pthread_barrier_wait(&churn.barrier);
    }
    return NULL;
}

/* Nanoseconds of CPU time of the whole process, for one replacement; `size` counts the threads, half of
 * them on either CPU. */
static void measure_exchange(const struct row *row, int unused)
{
    pthread_t threads[MOST_THREADS];
    (void)unused;
    churn.ops = CHURN_OPS / 2 / (long)row->size;
    pthread_barrier_init(&churn.barrier, NULL, (unsigned)row->size + 1);
    for (size_t i = 0; i < row->size; i++) {
        int cpu = i % 2 ? second_cpu() : home_cpu;
        start_thread(&threads[i], exchange_thread, (void *)(i + 1), cpu, cpu);
    }
    for (int c = 0; c < CHURN_CHUNKS; c++) {
        double start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        pthread_barrier_wait(&churn.barrier);
        pthread_barrier_wait(&churn.barrier);
        chunk_value[c] = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / (CHURN_OPS / 2);
    }
    for (size_t i = 0; i < row->size; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&churn.barrier);
    for (int i = 0; i < SHARED; i++)
        free(atomic_exchange(&shared[i], NULL));
    print_row(row, CHURN_CHUNKS);
}

static void run_on(int cpu)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0)
        fail("cannot move to another CPU");
}

static void *moving_thread(void *unused)
{
    void *slots[LIVE] = {0};
    unsigned state = 1;
    (void)unused;
    replace(slots, &state, 4 * LIVE);
    for (int c = 0; c < MOVES; c++) {
        run_on(c % 2 ? second_cpu() : home_cpu);
        double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        replace(slots, &state, MOVE_OPS);
        chunk_value[c] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / MOVE_OPS;
    }
    for (int i = 0; i < LIVE; i++)
        free(slots[i]);
    return NULL;
}

/* Nanoseconds of CPU time for one replacement, by a thread that changes its CPU after each chunk. */
static void measure_moving(const struct row *row, int chunks)
{
    pthread_t thread;
    (void)chunks;
    start_thread(&thread, moving_thread, NULL, home_cpu, second_cpu());
    pthread_join(thread, NULL);
    print_row(row, MOVES);
}

static void *short_thread(void *unused)
{
    void *objects[THREAD_OBJECTS];
    (void)unused;
    for (int i = 0; i < THREAD_OBJECTS; i++)
        objects[i] = touched(mixed_sizes[i]);
    for (int i = 0; i < THREAD_OBJECTS; i++)
        free(objects[i]);
    return NULL;
}

/* Microseconds of CPU time a thread: start, a few objects, end, join, all on one CPU. */
static void measure_short_threads(const struct row *row, int chunks)
{
    chunks = chunks < SHORT_CHUNKS ? chunks : SHORT_CHUNKS;
    for (int c = 0; c < chunks; c++) {
        double start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (int i = 0; i < THREADS_CHUNK; i++) {
            pthread_t thread;
            start_thread(&thread, short_thread, NULL, home_cpu, home_cpu);
            pthread_join(thread, NULL);
        }
        chunk_value[c] = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1000 / THREADS_CHUNK;
    }
    print_row(row, chunks);
}

static const struct row rows[] = {
    {"handed over 64 B", measure_handed, NULL, 64, 0},
    {"handed over 1 KiB", measure_handed, NULL, 1024, 0},
    {"handed over 16 KiB", measure_handed, NULL, 16 << 10, 0},
    {"2 threads", measure_churn, NULL, 2, 0},
    {"16 threads", measure_churn, NULL, 16, 0},
    {"4 threads all to all", measure_exchange, NULL, 4, 0},
    {"moving thread", measure_moving, NULL, 0, 0},
    {"thread start and end", measure_short_threads, NULL, 0, 0},
};

int main(int argc, char **argv)
{
    return run_driver(argc, argv, rows, sizeof rows / sizeof rows[0]);
}
