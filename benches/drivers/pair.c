/* Pairs: one object allocated, written once and freed. */
#include "frame.h"

static __attribute__((noinline)) void pair(size_t size, long ops)
{
    for (long i = 0; i < ops; i++)
        free(touched(size));
}

static __attribute__((noinline)) void untouched(size_t size, long ops)
{
    for (long i = 0; i < ops; i++) {
        void *volatile p = malloc(size);
        free(p);
    }
}

static const struct row rows[] = {
    {"pair 16 B", measure_chunks, pair, 16, 64},
    {"pair 64 B", measure_chunks, pair, 64, 64},
    {"pair 256 B", measure_chunks, pair, 256, 64},
    {"pair 1 KiB", measure_chunks, pair, 1024, 64},
    {"pair 8 KiB", measure_chunks, pair, 8 << 10, 8},
    {"pair 64 KiB", measure_chunks, pair, 64 << 10, 8},
    {"pair 256 KiB", measure_chunks, pair, 256 << 10, 8},
    {"pair 1 MiB", measure_chunks, pair, 1 << 20, 8},
    {"pair 4 MiB", measure_chunks, pair, 4 << 20, 8},
    {"pair 64 MiB untouched", measure_chunks, untouched, 64 << 20, 8},
};

int main(int argc, char **argv)
{
    return run_driver(argc, argv, rows, sizeof rows / sizeof rows[0]);
}
