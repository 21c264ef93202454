/* membarrier works at start and is refused later, as in a sandbox: automatic drains of a CPU where
 * nobody runs still bring its objects home. argv: the errno of the refusal. */
#include "seccomp.h"
#include "stats.h"

enum { OBJECTS = 500 };

static void fill_the_cache(void) {
    void *held[OBJECTS];
    for (int i = 0; i < OBJECTS; i++) CHECK((held[i] = malloc(64)));
    for (int i = 0; i < OBJECTS; i++) free(held[i]);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    move_to(0);
    fill_the_cache();
    if (!has_caches()) SKIP("no caches to drain");
    refuse_call(SYS_membarrier, (unsigned)atoi(argv[1]));
    for (unsigned round = 0; round < 10; round++) {
        const unsigned cpu = round % 2;
        move_to(cpu);
        fill_the_cache();
        move_to(1 - cpu);
        size_t objects = 0;
        if (drain_cpu(cpu, DRAIN_AUTO, &objects) != 0) FAIL("round %u: the drain is pending", round);
        if (objects == 0) FAIL("round %u: the drain found nothing", round);
        CHECK(allocate_each_kind() == 0);
    }
    return 0;
}
