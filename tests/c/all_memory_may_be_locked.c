/* A program locks all its memory, as root, or as a user who may lock only so much: it allocates on, in
 * threads too, and what it has is resident. argv: MiB that a user may lock; 0: as root. */
#include "stats.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { THREADS = 2, BYTES = 100 << 20 };

static void *work(void *unused) {
    (void)unused;
    CHECK(allocate_each_kind() == 0);
    return NULL;
}

static void become_a_user(rlim_t bytes) {
    const struct rlimit limit = {bytes, bytes};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) SKIP("the limit cannot be raised here");
    if (geteuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    const long mib = atol(argv[1]);
    free(malloc(100));
    if (mib == 0 && geteuid() != 0) SKIP("only root may lock without a limit");
    if (mib > 0) become_a_user((rlim_t)mib << 20);
    errno = 77;
    const double start = seconds_now();
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) FAIL("mlockall: errno %d", errno);
    CHECK(errno == 77);
    if (seconds_now() - start > 5) FAIL("mlockall takes %.1f s", seconds_now() - start);
    char *p = (char *)malloc(BYTES);
    CHECK(p);
    memset(p, 3, BYTES);
    CHECK(resident_kib() > BYTES / 1024);
    /* Not the whole reservation, nor what nobody asked for. */
    if (resident_kib() > 2 * BYTES / 1024) FAIL("%ld KiB are resident", resident_kib());
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(edges_hold(p, BYTES, 3));
    CHECK((p = (char *)realloc(p, 110 << 20)) && p[BYTES - 1] == 3);
    free(p);
    p = (char *)calloc(40, 1 << 20);
    CHECK(p);
    for (size_t at = 0; at < (size_t)40 << 20; at += 4096) CHECK(p[at] == 0);
    free(p);
    CHECK(munlockall() == 0);
    malloc_trim(0);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
