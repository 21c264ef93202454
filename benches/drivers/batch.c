/* Many objects alive: 1000 allocated, then freed in three orders; a random one of 4096 replaced. */
#include "frame.h"

enum {
    BATCH = 1000, /* objects allocated before the first is freed */
    LIVE = 4096,  /* objects alive in the mixed row */
};

static void *slots[LIVE];
static unsigned short order[BATCH];

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

static __attribute__((noinline)) void mixed(size_t unused, long ops)
{
    static unsigned state = 1;
    (void)unused;
    for (long i = 0; i < ops; i++) {
        unsigned r = next_random(&state);
        void **slot = &slots[r % LIVE];
        free(*slot);
        *slot = touched(mixed_sizes[(r >> 11) % SIZES]);
    }
}

/* The rows before have left freed addresses behind; the objects of this one go at its end. */
static void measure_mixed(const struct row *row, int chunks)
{
    memset(slots, 0, sizeof slots);
    measure_chunks(row, chunks);
    for (int i = 0; i < LIVE; i++)
        free(slots[i]);
}

static void shuffle(void)
{
    unsigned state = 1;
    for (int i = 0; i < BATCH; i++)
        order[i] = (unsigned short)i;
    for (int i = BATCH - 1; i > 0; i--) {
        int j = (int)(next_random(&state) % (unsigned)(i + 1));
        unsigned short kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static const struct row rows[] = {
    {"lifo 64 B", measure_chunks, lifo, 64, BATCH},
    {"fifo 64 B", measure_chunks, fifo, 64, BATCH},
    {"random 64 B", measure_chunks, shuffled, 64, BATCH},
    {"lifo 1 KiB", measure_chunks, lifo, 1024, BATCH},
    {"fifo 1 KiB", measure_chunks, fifo, 1024, BATCH},
    {"random 1 KiB", measure_chunks, shuffled, 1024, BATCH},
    {"lifo 16 KiB", measure_chunks, lifo, 16 << 10, BATCH},
    {"fifo 16 KiB", measure_chunks, fifo, 16 << 10, BATCH},
    {"random 16 KiB", measure_chunks, shuffled, 16 << 10, BATCH},
    {"mixed", measure_mixed, mixed, 0, LIVE},
};

int main(int argc, char **argv)
{
    shuffle();
    return run_driver(argc, argv, rows, sizeof rows / sizeof rows[0]);
}
