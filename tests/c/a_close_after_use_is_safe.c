/* dlclose after use from several threads: they are preempted (the kernel then reads the rseq
 * descriptor they last stored), allocate from libc, and exit. argv: path of the library. Case P9. */
#include "check.h"

enum { THREADS = 6 };
static void *(*library_malloc)(size_t);
static void (*library_free)(void *);
static volatile int closed;
static pthread_barrier_t used;

static void *thread(void *seed) {
    for (int i = 0; i < 3000; i++) {
        void *p = library_malloc(1 + (size_t)i % 2000 * (uintptr_t)seed);
        if (!p) FAIL("malloc is NULL");
        *(char *)p = 1;
        library_free(p);
    }
    pthread_barrier_wait(&used);
    while (!closed) sched_yield();
    double end = seconds_now() + 0.15; /* long enough to be preempted with more threads than CPUs */
    while (seconds_now() < end) free(malloc(100));
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (int round = 0; round < 3; round++) {
        void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!handle) FAIL("dlopen: %s", dlerror());
        *(void **)&library_malloc = dlsym(handle, "malloc");
        *(void **)&library_free = dlsym(handle, "free");
        CHECK(library_malloc && library_free);
        closed = 0;
        pthread_barrier_init(&used, NULL, THREADS + 1);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK(!pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)(i + 1)));
        pthread_barrier_wait(&used);
        CHECK(dlclose(handle) == 0);
        closed = 1;
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    return 0;
}
