/* Of a limit on address space that was set before the start nearly all can be had, in blocks of any size, and
 * threads start meanwhile. The runner sets the limit. argv: MiB of it, bytes of a block, per cent that
 * must be had. */
#include "check.h"

enum { LIVING = 3 };
static pthread_barrier_t everyone;

static void *live(void *unused) {
    (void)unused;
    void *held = malloc(1000);
    CHECK(held);
    pthread_barrier_wait(&everyone);
    free(held);
    return NULL;
}

/* So many threads at once have a stack each, of 8 MiB if the limit of stacks says so. */
static void have_threads(int count) {
    pthread_t threads[LIVING];
    CHECK(pthread_barrier_init(&everyone, NULL, (unsigned)count + 1) == 0);
    for (int i = 0; i < count; i++) {
        int result = pthread_create(&threads[i], NULL, live, NULL);
        if (result) FAIL("thread %d does not start: %s", i, strerror(result));
    }
    pthread_barrier_wait(&everyone);
    for (int i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&everyone) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc > 3);
    const size_t limit = (size_t)atol(argv[1]) << 20, bytes = (size_t)atol(argv[2]);
    const size_t wanted = limit / 100 * (size_t)atol(argv[3]);
    char **chain = NULL, **block;
    size_t had = 0, next = 0;
    while (errno = 0, (block = (char **)malloc(bytes))) {
        mark_edges(block, bytes, 3);
        *block = (char *)chain;
        chain = block;
        had += bytes;
        if (had >= next && had < limit / 2) {
            next += limit / 16;
            have_threads(1);
        }
        /* There is still room for stacks in the other half, since the heap takes no big steps. */
        if (had >= limit / 2 && next != SIZE_MAX) {
            have_threads(limit >= (size_t)1 << 30 ? LIVING : 1);
            next = SIZE_MAX;
        }
    }
    CHECK(errno == ENOMEM);
    if (had < wanted) FAIL("%zu KiB of %zu", had >> 10, limit >> 10);
    while (chain) {
        block = (char **)*chain;
        ((unsigned char *)chain)[0] = 3;
        memset(chain, 3, sizeof *chain);
        CHECK(edges_hold(chain, bytes, 3));
        free(chain);
        chain = block;
    }
    CHECK(allocate_each_kind() == 0);
    return 0;
}
