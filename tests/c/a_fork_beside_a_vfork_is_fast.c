/* A child forked while another thread's vfork is open has no such child in its memory: its requests
 * take the fast path.  So do the parent's once the vfork is over. */
#include "stats.h"

static int gate[2], opened[2];

/* Not inlined: a vfork child shares its parent's frame. */
__attribute__((noinline)) static pid_t spawn(void) {
    pid_t child = vfork();
    if (child == 0) {
        char byte = 0;
        if (write(opened[1], &byte, 1) != 1 || read(gate[0], &byte, 1) != 1) _exit(1);
        _exit(0);
    }
    return child;
}

static void *keep_a_vfork_open(void *unused) {
    (void)unused;
    CHECK(reap(spawn(), 10) == 0);
    return NULL;
}

static void check_pairs(const char *whose) {
    enum { PAIRS = 100000 };
    const long slow = slow_paths_of_pairs(PAIRS);
    if (slow > PAIRS / 100) FAIL("%s: %ld slow paths in %d pairs", whose, slow, PAIRS);
}

int main(void) {
    check_pairs("before");
    CHECK(pipe(gate) == 0 && pipe(opened) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, keep_a_vfork_open, NULL) == 0);
    char byte = 0;
    CHECK(read(opened[0], &byte, 1) == 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        check_pairs("the child of fork");
        _exit(0);
    }
    const int status = reap(child, 10);
    CHECK(write(gate[1], &byte, 1) == 1);
    pthread_join(thread, NULL);
    if (status) FAIL("child of fork: status %#x", (unsigned)status);
    check_pairs("the parent after the vfork");
    return 0;
}
