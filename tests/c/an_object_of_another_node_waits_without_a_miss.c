/* Objects of another node are freed on the fast path: they wait on their CPU's stack for that node, and
 * only each 32nd sends a batch home.  They come back to their own node, each once. */
#include "stats.h"

enum { OBJECTS = 3200, SIZE = 192 };
static void *held[OBJECTS];

/* As many objects on CPU `cpu`; each has a number in it. */
static void allocate_on(unsigned cpu) {
    move_to(cpu);
    for (long i = 0; i < OBJECTS; i++) {
        CHECK((held[i] = malloc(SIZE)));
        *(long *)held[i] = i;
    }
}

/* How many frees on CPU `cpu` left the fast path. */
static long misses_of_frees_on(unsigned cpu) {
    move_to(cpu);
    long before = statistic("misses");
    for (long i = 0; i < OBJECTS; i++) {
        CHECK(*(long *)held[i] == i);
        free(held[i]);
    }
    return statistic("misses") - before;
}

int main(void) {
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) SKIP("one CPU");
    for (int round = 0; round < 4; round++) {
        allocate_on(0);
        long misses = misses_of_frees_on(1);
        if (has_caches() && misses > OBJECTS / 32 + 8) FAIL("%ld of %d frees missed", misses, OBJECTS);
    }
    CHECK(drain_everything() == 0);
    CHECK(statistic("returned") > OBJECTS / 2);
    /* An object of a run or more goes home by itself, a block of compounds as well. */
    static const size_t large[] = {40000, 1 << 20, 5 << 20};
    for (int i = 0; i < 3; i++) {
        move_to(0);
        void *block = malloc(large[i]);
        CHECK(block);
        move_to(1);
        free(block);
    }
    return 0;
}
