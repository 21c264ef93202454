/* What the programs that run in the guest share: nodes as the kernel tells them, and its files. */
#ifndef GUEST_H
#define GUEST_H
#include "stats.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The first line of a file of /sys or /proc, without its end, until the thread's next call. */
static inline const char *line_of(const char *path) {
    static __thread char text[4096];
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

enum { NODES_MOST = 64 };

/* The first CPU of a node; negative where it has none, or is not there. */
static inline int cpu_of_node(int node) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    if (access(path, R_OK) != 0) return -1;
    const char *list = line_of(path);
    return *list ? atoi(list) : -1;
}

/* The nodes that have CPUs, in their order; how many. */
static inline int nodes_with_cpus(int nodes[NODES_MOST]) {
    int count = 0;
    for (int node = 0; node < NODES_MOST; node++)
        if (cpu_of_node(node) >= 0) nodes[count++] = node;
    return count;
}

/* The node of the CPU that runs this. */
static inline int own_node(void) {
    unsigned cpu, node;
    CHECK(syscall(SYS_getcpu, &cpu, &node, NULL) == 0);
    return (int)node;
}

static inline void move_to_node(int node) {
    move_to((unsigned)cpu_of_node(node));
    CHECK(own_node() == node);
}

/* How many of `count` objects have their first byte on a node, by the kernel's word; they were touched before. */
static inline int count_on_node(void *const *objects, int count, int node) {
    enum { AT_ONCE = 512 };
    int found = 0;
    for (int start = 0; start < count; start += AT_ONCE) {
        void *pages[AT_ONCE];
        int nodes[AT_ONCE], some = count - start < AT_ONCE ? count - start : AT_ONCE;
        for (int i = 0; i < some; i++) pages[i] = (void *)((uintptr_t)objects[start + i] & ~4095ul);
        CHECK(syscall(SYS_move_pages, 0, (long)some, pages, NULL, nodes, 0) == 0);
        for (int i = 0; i < some; i++) found += nodes[i] == node;
    }
    return found;
}

/* Touched objects of mixed sizes, from 16 bytes to some KiB. */
static inline void allocate_mixed(void **objects, int count, uint32_t seed) {
    uint32_t x = seed * 7919 + 1;
    for (int i = 0; i < count; i++) {
        size_t size = 16 + (next_random(&x) >> 8) % 1000;
        if (i % 64 == 0) size *= 8;
        CHECK((objects[i] = malloc(size)));
        mark_edges(objects[i], size, (unsigned char)i);
    }
}
static inline void free_all(void **objects, int count) {
    for (int i = 0; i < count; i++) free(objects[i]);
}

/* All of some fresh objects are on the node. */
static inline void check_fresh_objects(int node, const char *when) {
    enum { FRESH = 1000 };
    static __thread void *objects[FRESH];
    allocate_mixed(objects, FRESH, 5);
    int found = count_on_node(objects, FRESH, node);
    if (found != FRESH) FAIL("%s: %d of %d fresh objects are on node %d", when, found, FRESH, node);
    free_all(objects, FRESH);
}
#endif
