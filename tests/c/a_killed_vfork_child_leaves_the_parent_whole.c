/* A child of vfork dies inside the allocator, in its parent's memory: all threads of the parent go
 * on, slow paths and drains included.  argv: the call to die in. */
#include "seccomp.h"
#include "stats.h"

static unsigned trapped;

static void die(int signal_number) {
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

/* Not inlined: a vfork child shares its parent's frame. */
__attribute__((noinline)) static pid_t spawn_and_die(void **kept) {
    pid_t child = vfork();
    if (child == 0) {
        trap_call(trapped);
        give_back_and_grow(kept);
        _exit(3);
    }
    return child;
}

static void *use_everything(void *kept) {
    give_back_and_grow(kept);
    for (int i = 0; i < KEPT_BLOCKS; i++) free(((void **)kept)[i]);
    malloc_trim(0);
    CHECK(allocate_each_kind() == 0);
    return NULL;
}

static void hung(int signal_number) {
    (void)signal_number;
    FAIL("a thread of the parent hangs");
}

int main(int argc, char **argv) {
    static void *kept[KEPT_BLOCKS];
    trapped = argc > 1 && strcmp(argv[1], "mprotect") == 0 ? SYS_mprotect : SYS_madvise;
    CHECK(signal(SIGSYS, die) != SIG_ERR && signal(SIGALRM, hung) != SIG_ERR);
    CHECK(allocate_each_kind() == 0);
    alarm(10);
    pid_t child = spawn_and_die(kept);
    CHECK(child > 0);
    int status = reap(child, 5);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) return SKIPPED;
    if (!WIFSIGNALED(status)) FAIL("the child did not die in the call: status %#x", (unsigned)status);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, use_everything, kept) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    use_everything(kept);
    CHECK(drain_everything() == 0);
    CHECK(slow_paths_of_pairs(10000) < 1000);
    return 0;
}
