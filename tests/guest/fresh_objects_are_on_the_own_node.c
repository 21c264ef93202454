/* One thread a node. Each fills a table of objects, and half of it is freed by the next node's thread, again and
 * again; then each moves to another node. Counts which fresh objects are on the node of the CPU that asked for
 * them, and prints their shares in percent, before and after the move; on homenode both are 100. */
#include "guest.h"

enum { OBJECTS = 6000, ROUNDS = 12 };
static int nodes[NODES_MOST], count;
static void *table[NODES_MOST][OBJECTS];
static pthread_barrier_t all_are_here;
static long fresh[2], at_home[2];

/* Half of `table`, every second one. */
static void free_half(void **table, int odd) {
    for (int i = odd; i < OBJECTS; i += 2) {
        free(table[i]);
        table[i] = NULL;
    }
}

static void fill(int place, uint32_t seed, int phase) {
    static __thread void *new[OBJECTS];
    int missing = 0, next = 0;
    for (int i = 0; i < OBJECTS; i++) missing += !table[place][i];
    allocate_mixed(new, missing, seed);
    for (int i = 0; i < OBJECTS; i++)
        if (!table[place][i]) table[place][i] = new[next++];
    if (phase < 0) return;
    __atomic_fetch_add(&fresh[phase], missing, __ATOMIC_RELAXED);
    __atomic_fetch_add(&at_home[phase], count_on_node(new, missing, own_node()), __ATOMIC_RELAXED);
}

static void *live(void *number) {
    int place = (int)(intptr_t)number;
    move_to_node(nodes[place]);
    for (int round = 0; round < ROUNDS; round++) {
        fill(place, (uint32_t)(round * NODES_MOST + place), round == ROUNDS - 1 ? 0 : -1);
        pthread_barrier_wait(&all_are_here);
        free_half(table[(place + 1) % count], round % 2);
        pthread_barrier_wait(&all_are_here);
    }
    move_to_node(nodes[(place + 1) % count]);
    fill(place, (uint32_t)place, 1);
    return NULL;
}

int main(void) {
    pthread_t threads[NODES_MOST];
    count = nodes_with_cpus(nodes);
    pthread_barrier_init(&all_are_here, NULL, (unsigned)count);
    for (intptr_t i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, live, (void *)i) == 0);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    long before = at_home[0] * 100 / fresh[0], after = at_home[1] * 100 / fresh[1];
    printf("%ld/%ld\n", before, after);
    if (homenode_required()) CHECK(at_home[0] == fresh[0] && at_home[1] == fresh[1]);
    return 0;
}
