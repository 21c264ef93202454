/* Many short threads, each allocating a little and leaving one object to another: nothing is lost
 * and resident memory stays flat. argv: number of threads. */
#include "check.h"

enum { AT_ONCE = 8 };

static void *brief(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed * 2654435761u + 1;
    void *held[20];
    size_t size[20];
    for (int i = 0; i < 20; i++) {
        size[i] = 1 + (next_random(&x) >> 20);
        if (!(held[i] = malloc(size[i]))) FAIL("malloc is NULL");
        mark_edges(held[i], size[i], (unsigned char)i);
    }
    for (int i = 0; i < 20; i++) {
        if (!edges_hold(held[i], size[i], (unsigned char)i)) FAIL("a live object changed");
        free(held[i]);
    }
    size_t *legacy = malloc(600);
    if (!legacy) FAIL("malloc is NULL");
    *legacy = (size_t)seed;
    return legacy;
}

int main(int argc, char **argv) {
    int total = argc > 1 ? atoi(argv[1]) : 8000;
    long after_warm_up = 0;
    for (int done = 0; done < total; done += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            CHECK(!pthread_create(&threads[i], NULL, brief, (void *)(uintptr_t)(done + i)));
        for (int i = 0; i < AT_ONCE; i++) {
            void *legacy;
            CHECK(pthread_join(threads[i], &legacy) == 0);
            CHECK(*(size_t *)legacy == (size_t)(done + i));
            free(legacy);
        }
        if (done >= total / 4 && !after_warm_up) after_warm_up = resident_kib();
    }
    long end = resident_kib();
    if (end > after_warm_up + 4096) FAIL("resident memory grew from %ld to %ld KiB", after_warm_up, end);
    return 0;
}
