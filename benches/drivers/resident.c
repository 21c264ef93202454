/* What 200 threads hold that each touched a mix of objects and are alive. */
#include "frame.h"

enum {
    THREADS = 200,
    OBJECTS = 100, /* of mixed sizes, and one each of 4, 16 and 64 KiB, for each thread */
    KEPT = 10,     /* one object of so many stays */
};

static pthread_barrier_t touched_all, measured;

static void *touched_whole(size_t size)
{
    return memset(malloc(size), 1, size);
}

static void *touch_a_mix(void *number)
{
    void *objects[OBJECTS], *large[3];
    size_t first = (size_t)number * OBJECTS;
    for (size_t i = 0; i < OBJECTS; i++)
        objects[i] = touched_whole(mixed_sizes[(first + i) % SIZES]);
    for (int i = 0; i < 3; i++)
        large[i] = touched_whole((size_t)4096 << 2 * i);
    for (int i = 0; i < 3; i++)
        free(large[i]);
    for (int i = 0; i < OBJECTS; i++)
        if (i % KEPT != 0)
            free(objects[i]);
    pthread_barrier_wait(&touched_all);
    pthread_barrier_wait(&measured);
    for (int i = 0; i < OBJECTS; i += KEPT)
        free(objects[i]);
    return NULL;
}

/* Anonymous memory of this process in MiB, counted page by page: the counters of status lag behind. */
static double anonymous_mib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file)
        fail("cannot open /proc/self/smaps_rollup");
    while (kib < 0 && fgets(line, sizeof line, file))
        sscanf(line, "Anonymous: %ld kB", &kib);
    fclose(file);
    return (double)kib / 1024;
}

static void measure_resident(const struct row *row, int unused)
{
    pthread_t threads[THREADS];
    (void)unused;
    pthread_barrier_init(&touched_all, NULL, THREADS + 1);
    pthread_barrier_init(&measured, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, touch_a_mix, (void *)i) != 0)
            fail("cannot start 200 threads");
    pthread_barrier_wait(&touched_all);
    chunk_value[0] = anonymous_mib();
    pthread_barrier_wait(&measured);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    print_row(row, 1);
}

static const struct row rows[] = {
    {"resident of 200 threads", measure_resident, NULL, 0, 0},
};

int main(int argc, char **argv)
{
    return run_driver(argc, argv, rows, sizeof rows / sizeof rows[0]);
}
