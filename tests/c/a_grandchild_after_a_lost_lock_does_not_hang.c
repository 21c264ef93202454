/* A thread is stopped under a lock while another forks.  In the child, a new thread gets the stopped
 * one's stack, and so its thread pointer, and forks again: the grandchild, in which that lock seems
 * to be its own thread's, must not wait for it.  argv: the call to stop in. */
#include "seccomp.h"

static volatile int stopped;
static pthread_t holder;
static unsigned trapped;

static void stop(int signal_number) {
    (void)signal_number;
    for (stopped = 1;;) pause_us(1000000);
}

static void *hold_a_lock(void *kept) {
    trap_call(trapped);
    give_back_and_grow(kept);
    FAIL("the allocator never made the call");
}

static void *fork_again(void *unused) {
    (void)unused;
    if (!pthread_equal(pthread_self(), holder)) SKIP("the stack is not used again");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static void *kept[KEPT_BLOCKS];
        give_back_and_grow(kept);
        _exit(allocate_each_kind() ? 1 : 0);
    }
    int status = reap(child, 5);
    if (status == HUNG) FAIL("the grandchild hangs");
    if (status) FAIL("grandchild: status %#x", (unsigned)status);
    _exit(0);
}

int main(int argc, char **argv) {
    trapped = argc > 1 && strcmp(argv[1], "mprotect") == 0 ? SYS_mprotect : SYS_madvise;
    CHECK(signal(SIGSYS, stop) != SIG_ERR);
    static void *kept[KEPT_BLOCKS];
    CHECK(pthread_create(&holder, NULL, hold_a_lock, kept) == 0);
    for (double end = seconds_now() + 10; !stopped;) {
        if (seconds_now() > end) FAIL("the thread does not stop");
        pause_us(100);
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fork_again, NULL) != 0) FAIL("no thread");
        pthread_join(thread, NULL);
        _exit(2);
    }
    int status = reap(child, 15);
    if (status == HUNG) FAIL("the child hangs");
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    FAIL("child: status %#x", (unsigned)status);
}
