/* A request that finds no memory also looks into the caches of other CPUs: it uses at most 1 KiB of
 * stack below its caller. Needs a small slice. */
#include "check.h"
#include "stack.h"
#include "stats.h"

enum { SMALL = 3000, CACHED = 100 };
static void *volatile block, *volatile result;
static volatile size_t size;
static void *(*volatile new_or_null)(size_t, const void *);

static void take(void) { result = malloc(size); }
static void take_zeroed(void) { result = calloc(1, size); }
static void take_aligned(void) { result = aligned_alloc(4096, size); }
static void take_new(void) { result = new_or_null(size, ""); }
static void grow(void) { result = realloc(block, size); }

static void fill_the_cache_of(unsigned cpu) {
    void *held[CACHED];
    move_to(cpu);
    for (int i = 0; i < CACHED; i++) CHECK((held[i] = malloc(SMALL)));
    for (int i = 0; i < CACHED; i++) free(held[i]);
}

/* A list through the blocks themselves: an array of them would need to be large. */
static void *fill_memory(void) {
    void *last = NULL;
    for (size = SMALL;;) {
        FITS_A_KIBIBYTE(take, size);
        if (!result) return last;
        *(void **)result = last;
        last = result;
    }
}

int main(void) {
    static const size_t sizes[] = {16, SMALL, 20000, 40000, 200000, 3 << 20, 100 << 20, (size_t)1 << 60};
    *(void **)&new_or_null = dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t");
    CHECK(new_or_null);
    fill_the_cache_of(1);
    move_to(0);
    void *filled = fill_memory();
    block = filled;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size = sizes[i];
        FITS_A_KIBIBYTE(take, size);
        FITS_A_KIBIBYTE(take_zeroed, size);
        FITS_A_KIBIBYTE(take_aligned, size);
        FITS_A_KIBIBYTE(take_new, size);
        if (size < 4096) continue; /* the block itself would serve */
        FITS_A_KIBIBYTE(grow, size);
        if (result) FAIL("%zu bytes of no memory", size);
    }
    for (void *next; filled; filled = next) next = *(void **)filled, free(filled);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
