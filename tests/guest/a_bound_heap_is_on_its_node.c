/* Bound to node 1, threads of all nodes have their objects there. Case N2. */
#include "guest.h"

int main(void) {
    int nodes[NODES_MOST], count = nodes_with_cpus(nodes);
    for (int i = 0; i < count; i++) {
        move_to_node(nodes[i]);
        check_fresh_objects(1, "bound to node 1");
    }
    return 0;
}
