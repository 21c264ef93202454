/* A block of one node is touched by a thread on another: at home it is where the block's node is; under
 * HOMENODE_POLICY=firsttouch, where the thread was.  Arguments: the node wanted; seconds for which the thread
 * reads the block, so that a kernel that moves pages to their readers has cause to. */
#include "guest.h"

int main(int argc, char **argv) {
    CHECK(argc > 1);
    static void *pages[256];
    move_to_node(0);
    char *block = malloc(sizeof pages / sizeof *pages * 4096 + 4096);
    CHECK(block);
    move_to_node(1);
    for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++) {
        pages[i] = block + 4096 * (i + 1);
        *(char *)pages[i] = 1;
    }
    double end = seconds_now() + (argc > 2 ? atof(argv[2]) : 0);
    for (long sum = 0; seconds_now() < end;)
        for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++) sum += *(volatile char *)pages[i];
    int found = count_on_node(pages, sizeof pages / sizeof *pages, atoi(argv[1]));
    if (found < 250) FAIL("%d pages are on node %s", found, argv[1]);
    free(block);
    return 0;
}
