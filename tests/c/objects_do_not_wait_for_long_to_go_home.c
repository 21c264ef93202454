/* A few objects of another node wait on the CPU that freed them, and more never come: while the CPU goes on with
 * other work they go home all the same. */
#include "stats.h"

enum { FEW = 10, BLOCKS = 20000 };

int main(void) {
    static void *few[FEW], *blocks[BLOCKS];
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) SKIP("one CPU");
    move_to(0);
    for (int i = 0; i < FEW; i++) CHECK((few[i] = malloc(200)));
    if (!has_caches()) return 0;
    move_to(1);
    CHECK(drain_everything() == 0);
    for (int i = 0; i < FEW; i++) free(few[i]);
    if (statistic("away") != FEW) FAIL("%ld objects wait", statistic("away"));
    for (int i = 0; i < BLOCKS; i++) CHECK((blocks[i] = malloc(3000)));
    if (statistic("away") != 0) FAIL("%ld objects still wait after %ld misses", statistic("away"), statistic("misses"));
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    return 0;
}
