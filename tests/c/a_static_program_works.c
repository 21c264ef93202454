/* Linked statically with the archive (-u malloc): every name of the C ABI comes from it, and
 * threads, forks and stdio work. Case P7. Compiled also without the archive, as a static child. */
#define CHECK_STATIC
#include "check.h"

#ifdef WITH_HOMENODE
extern const char *hn_version(void);
extern int hn_drain_all(int how, size_t *objects);
extern void free_sized(void *, size_t);
extern void free_aligned_sized(void *, size_t, size_t);
#endif

int main(void) {
    CHECK(allocate_each_kind() == 0);
    pthread_t threads[4];
    start_churn(threads, 4);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(allocate_each_kind() ? 1 : 0);
        CHECK(reap(child, 10) == 0);
    }
    stop_churn(threads, 4);
    void *p = aligned_alloc(128, 1000), *q = NULL;
    CHECK(p && posix_memalign(&q, 4096, 100) == 0);
    free(p), free(q);
    free(memalign(64, 10)), free(reallocarray(calloc(3, 5), 100, 7));
    CHECK(malloc_usable_size(NULL) == 0);
#ifdef __GLIBC__
    free(valloc(10)), free(pvalloc(10));
    malloc_trim(0), mallopt(M_MMAP_THRESHOLD, 1 << 20), malloc_stats();
    (void)mallinfo2();
    FILE *null = fopen("/dev/null", "w");
    CHECK(null && malloc_info(0, null) == 0 && fclose(null) == 0);
#endif
#ifdef WITH_HOMENODE
    size_t objects = 0;
    CHECK(hn_version() && *hn_version() && hn_drain_all(0, &objects) >= 0);
    free_sized(malloc(77), 77), free_aligned_sized(aligned_alloc(64, 64), 64, 64);
#endif
    return 0;
}
