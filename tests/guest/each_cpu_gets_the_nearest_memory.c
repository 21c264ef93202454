/* Objects and blocks of each CPU are on its own node, or where that has no memory on one of the nearest that have
 * some. Case N6. */
#include "guest.h"

static int has_memory(int node) {
    char path[64], word[32];
    long total = -1;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    sscanf(line_of(path), "Node %*d %31s %ld", word, &total);
    CHECK(total >= 0);
    return total > 0;
}

/* The distance from `node` to the node `to`. */
static int distance(int node, int to) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", node);
    char *rest = (char *)line_of(path);
    for (int i = 0; i < to; i++) strtol(rest, &rest, 10);
    return (int)strtol(rest, NULL, 10);
}

static int nearest_distance(int node, int nodes) {
    int least = 1 << 20;
    for (int to = 0; to < nodes; to++)
        if (has_memory(to) && distance(node, to) < least) least = distance(node, to);
    return least;
}

enum { OBJECTS = 1000, BLOCKS = 8 };
static void *objects[OBJECTS];

static void check_near(int nodes, int least, int count) {
    int near = 0;
    for (int to = 0; to < nodes; to++)
        if (has_memory(to) && distance(own_node(), to) == least) near += count_on_node(objects, count, to);
    if (near != count) FAIL("node %d: %d of %d are near", own_node(), near, count);
}

int main(void) {
    int nodes = 0;
    char path[64];
    do snprintf(path, sizeof path, "/sys/devices/system/node/node%d", ++nodes);
    while (access(path, F_OK) == 0);
    for (int round = 0; round < 2; round++)
        for (int node = 0; node < nodes; node++) {
            if (cpu_of_node(node) < 0) continue;
            move_to_node(node);
            int least = nearest_distance(node, nodes);
            allocate_mixed(objects, OBJECTS, 3);
            check_near(nodes, least, OBJECTS);
            free_all(objects, OBJECTS);
            for (int i = 0; i < BLOCKS; i++) {
                CHECK((objects[i] = malloc((i + 1) * 700000)));
                mark_edges(objects[i], (i + 1) * 700000, 1);
            }
            check_near(nodes, least, BLOCKS);
            free_all(objects, BLOCKS);
        }
    return 0;
}
