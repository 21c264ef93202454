/* Small objects of a heap that has grown stand on memory for which huge pages are asked; those of a small
 * heap do not, nor do large blocks, which may be sparse. */
#include "stats.h"
#include <string.h>

enum { MIB = 1 << 20, SIZE = 1000 };

/* True when huge pages are asked for at `p`: "hg" among the flags of its map. */
static int asks_for_huge_pages(const void *p) {
    char line[512];
    int inside = 0, asks = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            inside = (unsigned long)p >= start && (unsigned long)p < end;
        else if (inside && !strncmp(line, "VmFlags:", 8))
            asks = strstr(line, " hg") != NULL;
    }
    fclose(maps);
    return asks;
}

int main(void) {
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) SKIP("no huge pages");
    char *first = malloc(SIZE), *last = NULL;
    CHECK(first && !asks_for_huge_pages(first));
    for (int i = 0; i < 40 * MIB / SIZE; i++) CHECK((last = malloc(SIZE)));
    if (!asks_for_huge_pages(last)) FAIL("a heap of 40 MiB does not ask at %p", (void *)last);
    CHECK(!asks_for_huge_pages(first));
    char *large = malloc(40 * MIB);
    CHECK(large && !asks_for_huge_pages(large));
    return 0;
}
