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
    check_fresh_objects(own_node(), "at start");
    return 0;
}
