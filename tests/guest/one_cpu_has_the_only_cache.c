/* A program that may only run on CPU 1 has one cache, there, and all CPUs can be drained. Case N9. */
#include "guest.h"

int main(int argc, char **argv) {
    if (!is_begun_anew(argc)) {
        move_to(1);
        begin_anew(argv);
    }
    pthread_t threads[4];
    start_churn(threads, 4);
    for (int i = 0; i < 20; i++) {
        pause_us(20000);
        CHECK(drain_everything() == 0);
    }
    stop_churn(threads, 4);
    CHECK(statistic("cpus") == 1);
    check_fresh_objects(own_node(), "on CPU 1");
    return 0;
}
