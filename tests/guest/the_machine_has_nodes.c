/* The machine is the one that was asked for, and a fresh object is where it was first touched. */
#include "guest.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int nodes = atoi(argv[1]);
    char path[64];
    for (int node = 0; node <= nodes; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
        CHECK((access(path, F_OK) == 0) == (node < nodes));
    }
    char *object = malloc(100);
    CHECK(object);
    *object = 1;
    CHECK(node_of_page(object) == own_node());
    return 0;
}
