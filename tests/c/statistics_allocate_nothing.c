/* The statistics take nothing from the heap that they tell of, and no more than 2 KiB of stack. In full
 * mode every call is counted, so one that they made themselves would show. */
#include "stack.h"
#include <fcntl.h>

enum { STATISTICS_STACK = 2048 };
static char first[65536], second[65536];
static size_t (*json)(char *, size_t);
static int (*print)(int);
static int null;

static void tell_json(void) { json(second, sizeof second); }
static void tell_text(void) { print(null); }

/* From the first count of the heap's up to the page faults, which anything may change. */
static size_t counts(const char *text, const char **start) {
    *start = strstr(text, "\"compounds\":");
    const char *end = strstr(text, ",\"page_faults\":");
    CHECK(*start && end);
    return (size_t)(end - *start);
}

int main(void) {
    *(void **)&json = dlsym(RTLD_DEFAULT, "hn_stats_json");
    *(void **)&print = dlsym(RTLD_DEFAULT, "hn_print_stats");
    if (!json && !homenode_required()) SKIP("not on homenode");
    CHECK(json && print && (null = open("/dev/null", O_WRONLY)) >= 0);
    CHECK(allocate_each_kind() == 0);

    json(first, sizeof first);
    CHECK(print(null) == 0);
    const int json_depth = depth_of(tell_json), text_depth = depth_of(tell_text);
    json(second, sizeof second);

    const char *before, *after;
    const size_t length = counts(first, &before);
    if (counts(second, &after) != length || memcmp(before, after, length) != 0)
        FAIL("first %s\nthen %s", first, second);
    if (json_depth > STATISTICS_STACK) FAIL("JSON takes %d bytes of stack", json_depth);
    if (text_depth > STATISTICS_STACK) FAIL("text takes %d bytes of stack", text_depth);
    return 0;
}
