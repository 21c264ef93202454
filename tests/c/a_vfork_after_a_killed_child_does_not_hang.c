/* A child of vfork dies inside the allocator; the next child of the same thread, whose memory names
 * the same thread, allocates the same classes and ends.  argv: the call to die in. */
#include "seccomp.h"

static unsigned trapped;

static void die(int signal_number) {
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

static void hung(int signal_number) {
    (void)signal_number;
    FAIL("a child hangs");
}

/* Not inlined: a vfork child shares its parent's frame, which sleeps until the child is gone. */
__attribute__((noinline)) static int spawn(void **kept, int dies) {
    const pid_t child = vfork();
    if (child == 0) {
        alarm(5);
        if (dies) trap_call(trapped);
        give_back_and_grow(kept); /* for ever, so that the next child grows, too */
        _exit(allocate_each_kind() ? 3 : 0);
    }
    CHECK(child > 0);
    return reap(child, 10);
}

int main(int argc, char **argv) {
    static void *kept[KEPT_BLOCKS];
    trapped = argc > 1 && strcmp(argv[1], "mprotect") == 0 ? SYS_mprotect : SYS_madvise;
    CHECK(signal(SIGSYS, die) != SIG_ERR && signal(SIGALRM, hung) != SIG_ERR);
    CHECK(allocate_each_kind() == 0);
    for (int round = 0; round < 3; round++) {
        int status = spawn(kept, 1);
        if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) return SKIPPED;
        if (!WIFSIGNALED(status)) FAIL("the child did not die in the call: status %#x", (unsigned)status);
        status = spawn(kept, 0);
        if (status) FAIL("round %d: the next child: status %#x", round, (unsigned)status);
    }
    alarm(10);
    give_back_and_grow(kept);
    for (int i = 0; i < KEPT_BLOCKS; i++) free(kept[i]);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
