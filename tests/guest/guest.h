/* What the programs that run in the guest share: nodes as the kernel tells them, and its files. */
#ifndef GUEST_H
#define GUEST_H
#include "stats.h"
#include <sys/stat.h>
#include <sys/syscall.h>

/* The first line of a file of /sys or /proc, without its end, until the next call. */
static inline const char *line_of(const char *path) {
    static char text[4096];
    int fd = open(path, O_RDONLY);
    if (fd < 0) FAIL("%s: errno %d", path, errno);
    ssize_t length = read(fd, text, sizeof text - 1);
    if (length < 0) FAIL("%s: errno %d", path, errno);
    close(fd);
    text[length] = 0;
    text[strcspn(text, "\n")] = 0;
    return text;
}

static inline void write_line(const char *path, const char *line) {
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line))
        FAIL("%s > %s: errno %d", line, path, errno);
    close(fd);
}

/* Starts the program anew, so that what was set up holds from its first allocation on: argument 2 says so. */
static inline int is_begun_anew(int argc) { return argc > 2; }
static inline void begin_anew(char **argv) {
    char *const again[] = {argv[0], argv[1], "anew", NULL};
    execv("/proc/self/exe", again);
    FAIL("exec: errno %d", errno);
}

/* Makes a control group and moves this process there; the setting is written first. */
static inline void enter_group(const char *controller, const char *setting, const char *value) {
    char path[128];
    snprintf(path, sizeof path, "+%s", controller);
    write_line("/sys/fs/cgroup/cgroup.subtree_control", path);
    if (mkdir("/sys/fs/cgroup/homenode", 0755) != 0 && errno != EEXIST) FAIL("mkdir: errno %d", errno);
    snprintf(path, sizeof path, "/sys/fs/cgroup/homenode/%s", setting);
    write_line(path, value);
    write_line("/sys/fs/cgroup/homenode/cgroup.procs", "0");
}

/* The node of the CPU that runs this. */
static inline int own_node(void) {
    unsigned cpu, node;
    CHECK(syscall(SYS_getcpu, &cpu, &node, NULL) == 0);
    return (int)node;
}

/* The node that the base page of `address` is on, by the kernel's word; negative where there is no page. */
static inline int node_of_page(const void *address) {
    void *page = (void *)((uintptr_t)address & ~4095ul);
    int node = -1;
    CHECK(syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) == 0);
    return node;
}
#endif
