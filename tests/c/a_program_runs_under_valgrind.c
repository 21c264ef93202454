/* Threads, blocks of every kind and drains under valgrind, which has no rseq.
 * argv: "served" where valgrind leaves malloc to the library. */
#include "stats.h"

enum { THREADS = 3, OBJECTS = 500 };

static void *use_every_kind(void *unused) {
    (void)unused;
    void *held[OBJECTS];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < OBJECTS; i++) {
            const size_t size = 1 + (size_t)i * 37 % 5000;
            CHECK((held[i] = i % 3 ? malloc(size) : calloc(1, size)));
            mark_edges(held[i], size, (unsigned char)i);
        }
        for (int i = 0; i < OBJECTS; i++) CHECK((held[i] = realloc(held[i], 1 + (size_t)i * 53 % 9000)));
        for (int i = 0; i < OBJECTS; i++) free(held[i]);
        CHECK(allocate_each_kind() == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const int served = argc > 1 && !strcmp(argv[1], "served");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, use_every_kind, NULL));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
    CHECK(drain_everything() == 0);
    malloc_trim(0);
    if (!strstr(statistics(), "\"rseq\":\"none\"")) FAIL("a wrong mode in %s", statistics());
    if (served) CHECK(statistic("refills") > 0);
    return 0;
}
