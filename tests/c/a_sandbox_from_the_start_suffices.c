/* A container's sandbox answers EPERM to all that is about nodes, CPUs and restartable sequences, from the
 * start on: the program runs, and nothing is said about it. */
#include "seccomp.h"

int main(int argc, char **argv) {
    if (argc < 2) {
        static const unsigned calls[] = {SYS_mbind,      SYS_set_mempolicy,    SYS_get_mempolicy,
                                         SYS_move_pages, SYS_migrate_pages,    SYS_getcpu,
                                         SYS_rseq,       SYS_sched_getaffinity, SYS_membarrier};
        for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) refuse_call(calls[i], EPERM);
        execl("/proc/self/exe", argv[0], "inside", (char *)NULL);
        FAIL("no exec");
    }
    pthread_t threads[2];
    start_churn(threads, 2);
    for (int i = 0; i < 100; i++) CHECK(allocate_each_kind() == 0);
    stop_churn(threads, 2);
    malloc_trim(0);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
