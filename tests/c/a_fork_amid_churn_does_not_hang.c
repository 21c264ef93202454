/* Forks while eight threads allocate: the child allocates, forks again, and both end.
 * argv: number of forks. Case F1. */
#include "check.h"

enum { THREADS = 8 };

static void be_the_child(void) {
    if (allocate_each_kind()) _exit(2);
    pid_t grandchild = fork();
    if (grandchild < 0) _exit(3);
    if (grandchild == 0) _exit(allocate_each_kind() ? 4 : 0);
    int status = reap(grandchild, 10);
    _exit(status == 0 && !allocate_each_kind() ? 0 : 5);
}

int main(int argc, char **argv) {
    int forks = argc > 1 ? atoi(argv[1]) : 50, hung = 0, failed = 0;
    pthread_t threads[THREADS];
    start_churn(threads, THREADS);
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) be_the_child();
        int status = reap(child, 15);
        if (status == HUNG) hung++;
        else if (status) failed++, dprintf(2, "child status %#x\n", (unsigned)status);
        if (allocate_each_kind()) FAIL("the parent's objects changed");
    }
    stop_churn(threads, THREADS);
    if (hung || failed) FAIL("%d forks: %d hung, %d failed", forks, hung, failed);
    return 0;
}
