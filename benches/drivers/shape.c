/* The other calls: calloc, aligned blocks, blocks that grow by realloc. */
#include "frame.h"

enum {
    STEP = 64,           /* bytes that a block grows by */
    LARGEST = 64 << 10,  /* bytes at which it starts anew */
    TOGETHER = 4,        /* blocks that grow in turns */
};

static __attribute__((noinline)) void cleared(size_t size, long ops)
{
    for (long i = 0; i < ops; i++)
        free(touch(calloc(1, size)));
}

/* Aligned to 64 bytes up to a page, to a page from there. */
static __attribute__((noinline)) void aligned(size_t size, long ops)
{
    size_t to = size < 4096 ? 64 : 4096;
    for (long i = 0; i < ops; i++) {
        void *p;
        if (posix_memalign(&p, to, size) != 0)
            fail("posix_memalign failed");
        free(touch(p));
    }
}

/* `blocks` blocks grow in turns, each step written at its end. */
static inline void grow(int blocks, long ops)
{
    char *block[TOGETHER];
    for (; ops > 0; ops -= LARGEST / STEP * TOGETHER) {
        for (int rest = TOGETHER; rest > 0; rest -= blocks) {
            memset(block, 0, sizeof block);
            for (size_t size = STEP; size <= LARGEST; size += STEP) {
                for (int i = 0; i < blocks; i++) {
                    block[i] = realloc(block[i], size);
                    touch(block[i] + size - 1);
                }
            }
            for (int i = 0; i < blocks; i++)
                free(block[i]);
        }
    }
}

static __attribute__((noinline)) void grow_alone(size_t unused, long ops)
{
    (void)unused;
    grow(1, ops);
}

static __attribute__((noinline)) void grow_four(size_t unused, long ops)
{
    (void)unused;
    grow(TOGETHER, ops);
}

static const struct row rows[] = {
    {"calloc 64 B", measure_chunks, cleared, 64, 64},
    {"aligned 64 B", measure_chunks, aligned, 64, 64},
    {"aligned 4 KiB", measure_chunks, aligned, 4096, 8},
    {"grow alone", measure_chunks, grow_alone, 0, LARGEST / STEP * TOGETHER},
    {"grow four", measure_chunks, grow_four, 0, LARGEST / STEP * TOGETHER},
};

int main(int argc, char **argv)
{
    return run_driver(argc, argv, rows, sizeof rows / sizeof rows[0]);
}
