/* The statistics start the library: as the first call of a program, before any constructor, they
 * say what they say later. Linked with -lhomenode. */
#include "stats.h"
#include <homenode.h>

enum { TEXT_BYTES = 8192 };
static char first[TEXT_BYTES], later[TEXT_BYTES];

static void ask_first(void) { hn_stats_json(first, sizeof first); }
__attribute__((section(".preinit_array"), used)) static void (*const earliest)(void) = ask_first;

/* The part of the text that cannot change. */
static size_t fixed_bytes(const char *text) {
    const char *counts = strstr(text, ",\"compounds\":");
    if (!counts) FAIL("no counts in %s", text);
    return (size_t)(counts - text);
}

int main(void) {
    CHECK(allocate_each_kind() == 0);
    hn_stats_json(later, sizeof later);
    const size_t fixed = fixed_bytes(later);
    if (fixed_bytes(first) != fixed || memcmp(first, later, fixed) != 0)
        FAIL("first %s\nlater %s", first, later);
    CHECK(statistic("slice_bytes") >= 1 << 20);
    return 0;
}
