/* A thread on node 0 asks for more than that node has: it gets all of it, the rest on the nearest other node.
 * Case N1, for the preference that is the default. argv: MiB of a node. */
#include "guest.h"

enum { MIB = 1 << 20, BLOCKS_MOST = 4096 };
static void *blocks[BLOCKS_MOST];

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int count = atoi(argv[1]) * 5 / 4;
    CHECK(count <= BLOCKS_MOST);
    move_to_node(0);
    for (int i = 0; i < count; i++) {
        CHECK((blocks[i] = malloc(MIB)));
        memset(blocks[i], i, MIB);
    }
    int home = count_on_node(blocks, count, 0), next = count_on_node(blocks, count, 1);
    if (home < count / 2 || home + next != count) FAIL("%d of %d on node 0, %d on node 1", home, count, next);
    free_all(blocks, count);
    malloc_trim(0);
    check_fresh_objects(0, "after all was freed");
    return 0;
}
