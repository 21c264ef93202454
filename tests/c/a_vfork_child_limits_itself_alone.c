/* A child of vfork sets a limit before it runs another program: its parent's heap is as long as before. */
#include "check.h"
#include <sys/resource.h>

static long mapped_pages(void) {
    char text[64] = {0};
    int fd = open("/proc/self/statm", O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atol(text);
}

int main(void) {
    free(malloc(100));
    long before = mapped_pages();
    pid_t child = vfork();
    if (child == 0) {
        struct rlimit limit = {(rlim_t)1 << 30, RLIM_INFINITY};
        int result = setrlimit(RLIMIT_AS, &limit);
        _exit(result == 0 ? 0 : 1);
    }
    CHECK(child > 0);
    int status = reap(child, 20);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(mapped_pages() >= before);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
