/* mallinfo2 counts what a program holds, small and large, and what it freed: on homenode to the byte. */
#include "check.h"

enum { SMALL = 30000, LARGE = 5 };
static void *small[SMALL], *large[LARGE];

static struct mallinfo2 now(void) {
    struct mallinfo2 info = mallinfo2();
    CHECK(info.arena == info.uordblks + info.fordblks);
    CHECK(info.fsmblks <= info.fordblks && info.usmblks == 0);
    return info;
}

/* A request's share of the heap: its usable size, and in glibc a header. */
static size_t share(void *block) { return malloc_usable_size(block) + (homenode_required() ? 0 : 8); }

static void moved(const char *what, size_t from, size_t to, long by) {
    long slack = homenode_required() ? 0 : 200000, got = (long)(to - from);
    if (got < by - slack || got > by + slack) FAIL("%s: %ld, not %ld", what, got, by);
}

static size_t take_small(void) {
    size_t bytes = 0;
    for (int i = 0; i < SMALL; i++) {
        CHECK(small[i] = malloc(100 + (size_t)i % 7 * 900));
        bytes += share(small[i]);
    }
    return bytes;
}

int main(void) {
    struct mallinfo2 start = now();
    size_t bytes = take_small(), freed = 0, mapped = 0;
    struct mallinfo2 full = now();
    moved("uordblks after malloc", start.uordblks, full.uordblks, (long)bytes);
    CHECK(full.hblks == start.hblks && full.hblkhd == start.hblkhd);

    for (int i = 0; i < SMALL; i += 2) freed += share(small[i]), free(small[i]);
    struct mallinfo2 half = now();
    moved("uordblks after free", full.uordblks, half.uordblks, -(long)freed);
    CHECK(half.fordblks > full.fordblks && half.ordblks + half.smblks > full.ordblks + full.smblks);

    for (int i = 0; i < LARGE; i++) {
        CHECK(large[i] = malloc((size_t)(i + 8) << 20));
        mapped += malloc_usable_size(large[i]);
    }
    struct mallinfo2 mixed = now();
    moved("hblkhd after malloc", half.hblkhd, mixed.hblkhd, (long)mapped);
    CHECK(mixed.hblks == half.hblks + LARGE);
    moved("uordblks after large blocks", half.uordblks, mixed.uordblks, 0);

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
    CHECK((size_t)narrow.uordblks == mixed.uordblks && (size_t)narrow.hblkhd == mixed.hblkhd);
    CHECK((size_t)narrow.arena == mixed.arena && (size_t)narrow.fordblks == mixed.fordblks);

    for (int i = 0; i < LARGE; i++) free(large[i]);
    for (int i = 1; i < SMALL; i += 2) free(small[i]);
    struct mallinfo2 end = now();
    moved("uordblks at the end", start.uordblks, end.uordblks, 0);
    CHECK(end.hblks == start.hblks && end.hblkhd == start.hblkhd);

    /* Nothing is held, so all of it goes; a second time there is nothing more. */
    CHECK(malloc_trim(0) == 1);
    struct mallinfo2 trimmed = now();
    CHECK(trimmed.arena < end.arena && trimmed.keepcost <= end.keepcost);
    if (homenode_required()) {
        moved("uordblks after the trim", end.uordblks, trimmed.uordblks, 0);
        CHECK(trimmed.keepcost == 0 && malloc_trim(0) == 0);
    }
    return 0;
}
