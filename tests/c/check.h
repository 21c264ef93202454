/* What the test programs share: one-line failures, a guard that the library under test is really
 * loaded (a preload that ld.so refuses is only a warning), and waits that cannot hang. */
#ifndef CHECK_H
#define CHECK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SKIPPED 77
#define HUNG (-1)
#define FAIL(...)                                                                                  \
    do {                                                                                           \
        dprintf(2, "%s:%d: ", __FILE__, __LINE__);                                                 \
        dprintf(2, __VA_ARGS__);                                                                   \
        dprintf(2, "\n");                                                                          \
        _exit(1);                                                                                  \
    } while (0)
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) FAIL("not true: %s (errno %d)", #condition, errno);                      \
    } while (0)
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        dprintf(2, "skipped: %s\n", why);                                                          \
        _exit(SKIPPED);                                                                            \
    } while (0)

/* Set by the test runner when the program must run on homenode and not on libc's malloc. */
static inline int homenode_required(void) { return getenv("TEST_NEEDS_HOMENODE") != NULL; }

#ifndef CHECK_STATIC
__attribute__((constructor)) static void check_that_the_library_is_loaded(void) {
    if (homenode_required() && !dlsym(RTLD_DEFAULT, "hn_version"))
        FAIL("libhomenode.so is not loaded");
}
#endif

static inline double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void pause_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* The wait status of `child`, or HUNG after `limit` seconds (the child is then killed). */
static inline int reap(pid_t child, double limit) {
    int status = 0;
    double end = seconds_now() + limit;
    for (long us = 20; seconds_now() < end; us = us < 2000 ? us * 2 : us) {
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child) return status;
        if (got < 0 && errno != EINTR) FAIL("waitpid: errno %d", errno);
        pause_us(us);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return HUNG;
}

static inline uint32_t next_random(uint32_t *state) {
    return *state = *state * 1664525u + 1013904223u;
}

static inline void mark_edges(void *p, size_t size, unsigned char tag) {
    if (!size) return;
    ((volatile unsigned char *)p)[0] = tag;
    ((volatile unsigned char *)p)[size - 1] = tag;
}

static inline int edges_hold(const void *p, size_t size, unsigned char tag) {
    const volatile unsigned char *b = (const volatile unsigned char *)p;
    return !size || (b[0] == tag && b[size - 1] == tag);
}

/* One object of each kind (classes, runs, whole compounds) at once, checked and freed. Returns 0,
 * or 1 + the index of the size that failed; safe in a handler and in a child. */
static inline int allocate_each_kind(void) {
    static const size_t sizes[] = {1,      16,     100,     1024,          5000,   32768,
                                   40000, 262144, 300000, (size_t)1 << 20, 1 << 21, 5 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    void *held[COUNT];
    for (int i = 0; i < COUNT; i++) {
        if (!(held[i] = malloc(sizes[i]))) return i + 1;
        mark_edges(held[i], sizes[i], (unsigned char)(i + 1));
    }
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        if (!edges_hold(held[i], sizes[i], (unsigned char)(i + 1))) wrong = i + 1;
        free(held[i]);
    }
    return wrong;
}

/* Threads that allocate and free until stopped, so that a fork or a spawn meets every state. */
static volatile int churn_stops;
static inline void *churn(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed * 7919u + 1u;
    unsigned char *held[128] = {0};
    size_t size[128] = {0};
    while (!churn_stops) {
        uint32_t r = next_random(&x) >> 8;
        unsigned i = r & 127;
        if (held[i] && !edges_hold(held[i], size[i], (unsigned char)i)) FAIL("a live object changed");
        free(held[i]);
        size[i] = (r & 0x1f80) ? 1 + (r >> 12) : 1 + (size_t)(r >> 12) * 64;
        if (!(held[i] = (unsigned char *)malloc(size[i]))) FAIL("malloc(%zu) is NULL", size[i]);
        mark_edges(held[i], size[i], (unsigned char)i);
    }
    for (int i = 0; i < 128; i++) free(held[i]);
    return NULL;
}
static inline void start_churn(pthread_t *threads, int count) {
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1)) == 0);
}
static inline void stop_churn(pthread_t *threads, int count) {
    churn_stops = 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* Resident memory of this process in KiB; reads by plain system calls, so it never allocates.  Not in pages:
 * qemu-user tells another size of them than the kernel counts in. */
#include <fcntl.h>
static inline long resident_kib(void) {
    static char text[1 << 14];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (length <= 0) FAIL("status cannot be read");
    close(fd);
    text[length] = 0;
    const char *found = strstr(text, "VmRSS:");
    return found ? atol(found + strlen("VmRSS:")) : 0;
}
#endif
