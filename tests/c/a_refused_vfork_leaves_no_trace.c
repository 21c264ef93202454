/* The system refuses a vfork, or the fork that a handler inside the allocator gets instead: the caller
 * gets -1 and EAGAIN, the refusal is counted, and everything is as fast and as right as before. */
#include "seccomp.h"
#include "stats.h"
#include <ucontext.h>

static volatile int spawns_in_handler;
static volatile int expected;

/* Not inlined: a vfork child shares its parent's frame. */
__attribute__((noinline)) static pid_t spawn(void) {
    pid_t child = vfork();
    if (child == 0) {
        free(malloc(100));
        _exit(0);
    }
    return child;
}

static void check_spawn(void) {
    errno = 0;
    pid_t child = spawn();
    if (expected) {
        if (child != -1 || errno != expected) FAIL("vfork returns %d, errno %d", child, errno);
    } else {
        CHECK(child > 0 && errno == 0);
        CHECK(reap(child, 10) == 0);
    }
}

/* The trapped call is refused, which malloc_trim copes with. */
static void in_handler(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    int kept = errno;
    check_spawn();
    spawns_in_handler++;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOMEM;
    errno = kept;
}

static void interrupt_the_allocator(void) {
    const int before = spawns_in_handler;
    char *p = (char *)malloc(3 << 20);
    CHECK(p);
    mark_edges(p, 3 << 20, 1);
    free(p);
    malloc_trim(0);
    CHECK(spawns_in_handler > before);
}

static void check_pairs(void) {
    enum { PAIRS = 100000 };
    const long slow = slow_paths_of_pairs(PAIRS);
    if (slow > PAIRS / 100) FAIL("%ld slow paths in %d pairs", slow, PAIRS);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = in_handler, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    CHECK(allocate_each_kind() == 0);
    check_spawn();
    CHECK(statistic("vfork") == 0);

    trap_call(SYS_madvise);
    interrupt_the_allocator();
    CHECK(statistic("vfork") == 0);

    refuse_call(SYS_vfork, EAGAIN);
    expected = EAGAIN;
    for (int i = 1; i <= 3; i++) {
        check_spawn();
        CHECK(statistic("vfork") == i);
        check_pairs();
    }

    refuse_call(SYS_fork, EAGAIN);
    spawns_in_handler = 0;
    interrupt_the_allocator();
    CHECK(statistic("vfork") == 3 + spawns_in_handler);
    check_pairs();
    CHECK(allocate_each_kind() == 0);
    return 0;
}
