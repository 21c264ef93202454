/* The CPUs and nodes that a running program may use change: fresh objects are where it may have them, and nothing
 * is lost. Once both nodes are allowed again, fresh objects are on the own one; as memory that is in use does not
 * move, after it was "given_back". argv: this, or "allowed" for neither. */
#include "guest.h"

static void allow(const char *cpus, const char *mems) {
    write_line("/sys/fs/cgroup/homenode/cpuset.mems", mems);
    write_line("/sys/fs/cgroup/homenode/cpuset.cpus", cpus);
    pause_us(200000);
}

static void run_anywhere(void) {
    cpu_set_t all;
    memset(&all, 255, sizeof all);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
}

static void narrow_and_widen(int gives_back) {
    pthread_t threads[4];
    start_churn(threads, 4);
    allow("0-1", "0");
    check_fresh_objects(0, "on node 0");
    allow("2-3", "1");
    check_fresh_objects(1, "on node 1");
    allow("2-3", "0");
    check_fresh_objects(0, "on CPUs of node 1 with memory of node 0");
    CHECK(drain_everything() == 0);
    allow("0-3", "0-1");
    if (gives_back) {
        stop_churn(threads, 4);
        CHECK(drain_everything() == 0);
        malloc_trim(0);
    }
    for (int node = 0; gives_back && node < 2; node++) {
        move_to_node(node);
        check_fresh_objects(node, "with both nodes");
    }
    run_anywhere();
    if (!gives_back) stop_churn(threads, 4);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    enter_group("cpuset", "cpuset.mems", "0");
    for (int round = 0; round < 3; round++) {
        churn_stops = 0;
        narrow_and_widen(strcmp(argv[1], "given_back") == 0);
    }
    return 0;
}
