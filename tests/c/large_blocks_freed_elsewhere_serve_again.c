/* Blocks of one node, freed on a CPU of another, are not held back there: allocated again at home
 * they need no new compounds. Needs CPUs 0 and 1 on different nodes. */
#include "stats.h"

enum { BLOCKS = 64, MIB = 1 << 20 };

int main(void) {
    static void *held[BLOCKS];
    move_to(1);
    free(malloc(MIB));
    move_to(0);
    for (int i = 0; i < BLOCKS; i++) CHECK((held[i] = malloc(MIB)));
    const long before = statistic("compounds");
    for (int round = 0; round < 4; round++) {
        move_to(1);
        for (int i = 0; i < BLOCKS; i++) free(held[i]);
        move_to(0);
        for (int i = 0; i < BLOCKS; i++) CHECK((held[i] = malloc(MIB)));
    }
    const long more = statistic("compounds") - before;
    for (int i = 0; i < BLOCKS; i++) free(held[i]);
    if (more > 0) FAIL("%ld new compounds for the same blocks", more);
    return 0;
}
