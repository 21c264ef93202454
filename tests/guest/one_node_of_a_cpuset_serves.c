/* A program that may only use the memory of node 1 starts, whatever CPU it runs on, and has all there. Case N7. */
#include "guest.h"

int main(int argc, char **argv) {
    if (!is_begun_anew(argc)) {
        enter_group("cpuset", "cpuset.mems", "1");
        begin_anew(argv);
    }
    int nodes[NODES_MOST], count = nodes_with_cpus(nodes);
    for (int i = 0; i < count; i++) {
        move_to_node(nodes[i]);
        check_fresh_objects(1, "in the cpuset");
        CHECK(allocate_each_kind() == 0);
    }
    return 0;
}
