/* A vfork child allocates and frees before exec, alone and while threads churn; the parent's
 * objects stay whole. argv: number of spawns. Case F5. */
#include "check.h"
#include <spawn.h>

enum { KEPT = 2000 };
static unsigned char *kept[KEPT];

static size_t size_of(int i) { return 16 + (size_t)(i * 37) % 3000; }

/* Not inlined: a vfork child shares its parent's frame until exec. */
__attribute__((noinline)) static pid_t spawn(int exec) {
    static char *const argv[] = {"true", NULL}, *const environment[] = {NULL};
    pid_t child = vfork();
    if (child == 0) {
        for (int i = 0; i < 200; i++) {
            void *p = malloc(size_of(i));
            if (!p) _exit(2);
            mark_edges(p, size_of(i), 0xcc);
            free(p);
        }
        if (allocate_each_kind()) _exit(3);
        if (exec) execve("/bin/true", argv, environment);
        _exit(exec ? 4 : 0);
    }
    return child;
}

static void check_kept(void) {
    for (int i = 0; i < KEPT; i++)
        if (!edges_hold(kept[i], size_of(i), (unsigned char)i)) FAIL("object %d changed", i);
}

static void spawn_many(int count) {
    for (int i = 0; i < count; i++) {
        pid_t child = spawn(i % 2);
        CHECK(child > 0);
        int status = reap(child, 10);
        if (status == HUNG) FAIL("vfork child %d hung", i);
        if (status) FAIL("vfork child %d: status %#x", i, (unsigned)status);
        if (allocate_each_kind()) FAIL("the parent's objects changed");
        char *argv[] = {"true", NULL}, *environment[] = {NULL};
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, argv, environment) == 0);
        CHECK(reap(child, 10) == 0);
        check_kept();
    }
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 100;
    pthread_t threads[4];
    for (int i = 0; i < KEPT; i++) {
        CHECK((kept[i] = malloc(size_of(i))));
        mark_edges(kept[i], size_of(i), (unsigned char)i);
    }
    spawn_many(count / 2);
    start_churn(threads, 4);
    spawn_many(count / 2);
    stop_churn(threads, 4);
    for (int i = 0; i < KEPT; i++) free(kept[i]);
    return 0;
}
