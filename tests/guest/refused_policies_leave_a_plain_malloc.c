/* Where a sandbox answers EPERM to mbind, set_mempolicy, get_mempolicy and move_pages, as containers do, it is a
 * plain malloc: silent, and the statistics tell of it. Case N8. */
#include "guest.h"
#include "seccomp.h"
#include <sys/mman.h>

static void go_quiet(void) {
    int file = memfd_create("stderr", 0);
    CHECK(file >= 0 && dup2(2, 9) == 9 && dup2(file, 2) == 2);
}

int main(int argc, char **argv) {
    if (!is_begun_anew(argc)) {
        go_quiet();
        static const int calls[] = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages};
        for (int i = 0; i < 4; i++) refuse_call((unsigned)calls[i], EPERM);
        begin_anew(argv);
    }
    int nodes[NODES_MOST], count = nodes_with_cpus(nodes);
    pthread_t threads[4];
    start_churn(threads, 4);
    for (int i = 0; i < count; i++) {
        move_to_node(nodes[i]);
        for (int again = 0; again < 20; again++) CHECK(allocate_each_kind() == 0);
    }
    stop_churn(threads, 4);
    long refused = statistic("mbind");
    off_t said = lseek(2, 0, SEEK_END);
    dup2(9, 2);
    if (said != 0) FAIL("%ld bytes on standard error", (long)said);
    if (refused == 0) FAIL("no refusal is counted");
    return 0;
}
