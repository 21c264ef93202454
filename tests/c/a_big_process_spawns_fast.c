/* vfork costs no page tables: from a process with a gibibyte touched, vfork and execve take about
 * as long as posix_spawn, which is not ours. The least of many times each. */
#include "check.h"
#include <spawn.h>

enum { SPAWNS = 40, GIB = 1 << 30, PAGE = 4096 };
static char *const argv_of_true[] = {"true", NULL}, *const empty[] = {NULL};

/* Not inlined: a vfork child shares its parent's frame until exec. */
__attribute__((noinline)) static pid_t by_vfork(void) {
    const pid_t child = vfork();
    if (child == 0) {
        execve("/bin/true", argv_of_true, empty);
        _exit(4);
    }
    return child;
}

static pid_t by_posix_spawn(void) {
    pid_t child = -1;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, argv_of_true, empty) == 0);
    return child;
}

static void lower(double *least, pid_t (*spawn)(void)) {
    const double start = seconds_now();
    const pid_t child = spawn();
    const double taken = seconds_now() - start;
    CHECK(child > 0);
    int status = reap(child, 10);
    if (status) FAIL("/bin/true: status %#x", (unsigned)status);
    if (taken < *least) *least = taken;
}

int main(void) {
    char *big = malloc(GIB);
    CHECK(big);
    for (size_t i = 0; i < GIB; i += PAGE) big[i] = 1;
    double ours = 1e9, libcs = 1e9;
    for (int i = 0; i < SPAWNS; i++) {
        lower(&ours, by_vfork);
        lower(&libcs, by_posix_spawn);
    }
    if (ours > 1.3 * libcs) FAIL("vfork %.0f us, posix_spawn %.0f us", ours * 1e6, libcs * 1e6);
    free(big);
    return 0;
}
