/* A thread on one node frees all that it had and ends; a thread on another node that asks for the same sizes gets
 * memory of its own node. Case N3. */
#include "guest.h"

enum { OBJECTS = 4000 };

static void *fill_and_free(void *node) {
    void *objects[OBJECTS];
    move_to_node((int)(intptr_t)node);
    allocate_mixed(objects, OBJECTS, 1);
    int found = count_on_node(objects, OBJECTS, own_node());
    if (found != OBJECTS) FAIL("%d of %d are on node %d", found, OBJECTS, own_node());
    free_all(objects, OBJECTS);
    return NULL;
}

int main(void) {
    int nodes[NODES_MOST], count = nodes_with_cpus(nodes);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < count; i++) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, fill_and_free, (void *)(intptr_t)nodes[i]) == 0);
            pthread_join(thread, NULL);
        }
    return 0;
}
