/* A program that includes homenode.h and is linked with -lhomenode finds what the header declares. */
#include "check.h"
#include <homenode.h>

int main(void) {
    char text[65536];
    size_t objects = 1;
    CHECK(allocate_each_kind() == 0);
    CHECK(hn_version()[0] >= '0' && hn_version()[0] <= '9');
    CHECK(hn_drain_all(HN_DRAIN_AUTO, &objects) >= 0);
    CHECK(hn_drain_cpu(0, HN_DRAIN_QUIET, NULL) >= 0);
    CHECK(hn_stats_json(text, sizeof text) < sizeof text);
    CHECK(strstr(text, hn_version()));
    /* Its malloc is ours, too: the first number of spans is that of all classes. */
    const char *spans = strstr(text, "\"spans\":");
    CHECK(spans && atol(spans + strlen("\"spans\":")) > 0);
    int null = open("/dev/null", O_WRONLY);
    CHECK(null >= 0 && hn_print_stats(null) == 0);
    return 0;
}
