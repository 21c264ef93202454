/* The main thread makes all objects on its node, and a thread on each node frees its part, again and again: all of
 * them come home, where they are used again, and resident memory stays what is live, the caches and a tenth. */
#include "guest.h"

enum { OBJECTS = 40000, ROUNDS = 10, WARM = 3 };
static void *objects[OBJECTS];
static int nodes[NODES_MOST], count;
static pthread_barrier_t made, freed;

static void *free_a_part(void *number) {
    int part = (int)(intptr_t)number;
    move_to_node(nodes[part]);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&made);
        for (int i = part; i < OBJECTS; i += count) free(objects[i]);
        pthread_barrier_wait(&freed);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[NODES_MOST];
    count = nodes_with_cpus(nodes);
    move_to_node(nodes[0]);
    pthread_barrier_init(&made, NULL, (unsigned)count + 1);
    pthread_barrier_init(&freed, NULL, (unsigned)count + 1);
    for (intptr_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, free_a_part, (void *)i) == 0);
    long live_kib = 0, last_kib = 0, compounds = 0;
    for (int round = 0; round < ROUNDS; round++) {
        allocate_mixed(objects, OBJECTS, (uint32_t)round);
        int found = count_on_node(objects, OBJECTS, nodes[0]);
        if (homenode_required() && found != OBJECTS) FAIL("round %d: %d of %d are at home", round, found, OBJECTS);
        live_kib = 0;
        for (int i = 0; i < OBJECTS; i++) live_kib += (long)malloc_usable_size(objects[i]);
        live_kib /= 1024;
        last_kib = resident_kib();
        if (homenode_required() && round == WARM) compounds = statistic("compounds");
        pthread_barrier_wait(&made);
        pthread_barrier_wait(&freed);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("%ld of %ld MiB\n", last_kib / 1024, live_kib / 1024);
    if (!homenode_required()) return 0;
    long cached_kib = statistic("slab_bytes") / 1024;
    if (last_kib > live_kib + live_kib / 10 + cached_kib + 8192)
        FAIL("%ld KiB resident, %ld live, %ld in caches at most", last_kib, live_kib, cached_kib);
    if (statistic("compounds") > compounds + 2) FAIL("%ld compounds, then %ld", compounds, statistic("compounds"));
    CHECK(drain_everything() == 0);
    CHECK(statistic("away") == 0);
    if (statistic("out") - statistic("racked") > 2000) FAIL("%ld objects are out", statistic("out"));
    return 0;
}
