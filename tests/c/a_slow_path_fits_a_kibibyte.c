/* Every way to get, resize and free a block, hits and misses of every kind, uses at most 1 KiB of
 * stack below its caller. Every other free comes from another CPU, so that with several nodes
 * objects also go home. argv: the way to get blocks. */
#include "stack.h"

enum { OBJECTS = 2400, LARGE = 40 };
static void *(*volatile allocate)(size_t), *(*volatile resize)(void *, size_t) = realloc;
static void (*volatile release)(void *) = free;
static void *volatile block;
static volatile size_t size;

static void *zeroed(size_t bytes) { return calloc(1, bytes); }
static void *from_null(size_t bytes) { return realloc(NULL, bytes); }
static void *on_a_line(size_t bytes) { return aligned_alloc(64, bytes); }
static void *on_a_page(size_t bytes) { return aligned_alloc(4096, bytes); }
static void *on_a_huge_page(size_t bytes) { return aligned_alloc(2 << 20, bytes); }

static void take(void) { block = allocate(size); }
static void drop(void) { release(block); }
static void change(void) { block = resize(block, size); }

static void run_on(unsigned cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* one CPU alone is fine, too */
}

static void get_and_free(void) {
    static void *held[OBJECTS];
    for (size = 1; size < 4000000; size += size < 1000 ? 24 : size / 12) {
        const int count = size < 2000 ? OBJECTS : LARGE;
        for (int i = 0; i < count; i++) {
            FITS_A_KIBIBYTE(take, size);
            CHECK((held[i] = block));
        }
        for (int i = 0; i < count; i++) {
            if (i % (count / 4) == 0) run_on((unsigned)(i / (count / 4)) % 2);
            block = held[i];
            FITS_A_KIBIBYTE(drop, size);
        }
    }
}

/* Grows, shrinks, and grows by so little that the block may stay. */
static void change_sizes(void) {
    static const size_t sizes[] = {16,      100,     5000,    300,     40000,   600000, 50000,   3 << 20,
                                   3500000, 9 << 20, 9000000, 5 << 20, 17 << 20, 20,     1 << 20, 24};
    allocate = malloc;
    for (int i = 0; i < LARGE; i++) {
        block = NULL;
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size = sizes[(s + (unsigned)i) % (sizeof sizes / sizeof *sizes)];
            run_on(s % 2);
            FITS_A_KIBIBYTE(change, size);
            CHECK(block);
        }
        free(block);
    }
}

int main(int argc, char **argv) {
    const struct { const char *name; void *(*get)(size_t); } ways[] = {
        {"malloc", malloc}, {"calloc", zeroed}, {"line", on_a_line}, {"page", on_a_page},
        {"realloc", from_null}, {"huge", on_a_huge_page}, {"new", (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm")}};
    CHECK(argc > 1);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(argv[1], ways[i].name)) allocate = ways[i].get;
    if (!strcmp(argv[1], "resize")) return change_sizes(), 0;
    CHECK(allocate);
    get_and_free();
    return 0;
}
