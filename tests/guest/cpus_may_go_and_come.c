/* CPUs are taken from under running threads and given back: nothing is lost, drains end, and what a thread asks for
 * on a CPU that came back is at home. */
#include "guest.h"

enum { FIRST = 1, LAST = 3 };

static void set_online(int cpu, int online) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", cpu);
    write_line(path, online ? "1" : "0");
}

int main(void) {
    pthread_t threads[6];
    start_churn(threads, 6);
    for (int round = 0; round < 2; round++) {
        for (int cpu = FIRST; cpu <= LAST; cpu++) {
            set_online(cpu, 0);
            pause_us(100000);
            CHECK(drain_everything() == 0);
            CHECK(allocate_each_kind() == 0);
        }
        for (int cpu = FIRST; cpu <= LAST; cpu++) set_online(cpu, 1);
        pause_us(100000);
    }
    stop_churn(threads, 6);
    for (unsigned cpu = 0; cpu <= LAST; cpu++) {
        move_to(cpu);
        check_fresh_objects(own_node(), "back online");
    }
    CHECK(drain_everything() == 0);
    return 0;
}
