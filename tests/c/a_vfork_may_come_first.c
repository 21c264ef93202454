/* A vfork before the first request of the process, whose child makes that request: the process that
 * goes on is still the one that the allocator belongs to.  Once a later vfork is open, its threads
 * are not taken for the child's, so that their drains end; and a child of fork is noticed. */
#include "stats.h"
#include <sys/syscall.h>

static int gate[2], opened[2];

/* True once the allocator has reserved its address space: a map of 1 GiB.  By system calls alone. */
static int has_started(void) {
    static char maps[1 << 16];
    size_t length = 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
    if (fd < 0) return 0;
    for (long got = 1; got > 0 && length < sizeof maps - 1; length += (size_t)got)
        if ((got = syscall(SYS_read, fd, maps + length, sizeof maps - 1 - length)) < 0) got = 0;
    syscall(SYS_close, fd);
    for (char *line = maps; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char *end;
        const unsigned long first = strtoul(line, &end, 16);
        if (*end == '-' && strtoul(end + 1, NULL, 16) - first >= 1ul << 30) return 1;
    }
    return 0;
}

/* Not inlined: a vfork child shares its parent's frame. */
__attribute__((noinline)) static pid_t spawn(int waits) {
    pid_t child = vfork();
    if (child == 0) {
        char byte = 0;
        if (waits && (write(opened[1], &byte, 1) != 1 || read(gate[0], &byte, 1) != 1)) _exit(1);
        _exit(allocate_each_kind());
    }
    return child;
}

static void *keep_a_vfork_open(void *unused) {
    (void)unused;
    CHECK(reap(spawn(1), 10) == 0);
    return NULL;
}

/* Before any constructor: the library's own makes a request, since dlsym allocates when it fails. */
static void first(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    if (has_started()) FAIL("a request was made before the first constructor");
    const pid_t child = spawn(0);
    CHECK(child > 0 && reap(child, 10) == 0);
    CHECK(has_started());
    CHECK(allocate_each_kind() == 0);
}
__attribute__((section(".preinit_array"), used)) static void (*run_first)(int, char **, char **) = first;

int main(void) {

    CHECK(pipe(gate) == 0 && pipe(opened) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, keep_a_vfork_open, NULL) == 0);
    char byte = 0;
    CHECK(read(opened[0], &byte, 1) == 1);
    CHECK(allocate_each_kind() == 0);
    const int pending = drain_everything();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(drain_everything() != 0 || allocate_each_kind());
    const int status = reap(child, 10);
    CHECK(write(gate[1], &byte, 1) == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    if (pending) FAIL("a drain beside a vfork is pending");
    if (status) FAIL("child of fork: status %#x", (unsigned)status);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
