/* After the start the program limits its own address space: threads start, maps are granted, and what the
 * heap is refused is NULL and ENOMEM. argv: which call sets the limit, and MiB. */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { THREADS = 4, MANY = 1 << 14 };

static void *work(void *unused) {
    (void)unused;
    int wrong = allocate_each_kind();
    if (wrong) FAIL("kind %d is not served", wrong);
    return NULL;
}

static void limit_to(const char *call, rlim_t bytes) {
    struct rlimit limit = {bytes, RLIM_INFINITY}, old = {0, 0};
    struct rlimit64 limit64 = {bytes, RLIM64_INFINITY};
    int result = -1;
    errno = 77;
    if (!strcmp(call, "setrlimit")) result = setrlimit(RLIMIT_AS, &limit);
    if (!strcmp(call, "setrlimit64")) result = setrlimit64(RLIMIT_AS, &limit64);
    if (!strcmp(call, "prlimit")) result = prlimit(getpid(), RLIMIT_AS, &limit, &old);
    if (!strcmp(call, "prlimit64")) result = prlimit64(0, RLIMIT_AS, &limit64, NULL);
    CHECK(result == 0 && errno == 77);
    if (!strcmp(call, "prlimit")) CHECK(old.rlim_cur != bytes);
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == bytes);
}

static void start_threads(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc > 2);
    static void *held[MANY];
    char *before = (char *)malloc(20 << 20);
    CHECK(before);
    memset(before, 5, 20 << 20);
    limit_to(argv[1], (rlim_t)atol(argv[2]) << 20);
    start_threads();
    void *map = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    CHECK(munmap(map, 16 << 20) == 0);
    int count = 0;
    errno = 0;
    while (count < MANY && (held[count] = malloc(1 << 20))) mark_edges(held[count], 1 << 20, 1), count++;
    if (count < 4 || count == MANY) FAIL("%d blocks of a MiB", count);
    CHECK(errno == ENOMEM);
    for (int i = 0; i < count; i++) CHECK(edges_hold(held[i], 1 << 20, 1));
    for (int i = 0; i < count; i++) free(held[i]);
    CHECK(edges_hold(before, 20 << 20, 5));
    free(before);
    start_threads();
    /* What was given up is mapped again when it is needed. */
    limit_to(argv[1], RLIM_INFINITY);
    void *large = malloc((size_t)8 << 30);
    CHECK(large);
    mark_edges(large, (size_t)8 << 30, 1);
    free(large);
    CHECK(allocate_each_kind() == 0);
    start_threads();
    return 0;
}
