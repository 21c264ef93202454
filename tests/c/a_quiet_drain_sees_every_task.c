/* A thread computes on CPU 1 without a request, last in the list of tasks while those before it end:
 * a quiet drain of CPU 1 may not miss it and take that CPU for idle. argv: seconds. */
#include "stats.h"

enum { SHORT = 60, DRAINS = 30 };
static volatile int computes, stops;

static void *live_shortly(void *number) {
    pause_us((long)(uintptr_t)number * 7919 % 3000);
    return NULL;
}

static void *compute(void *unused) {
    (void)unused;
    move_to(1);
    for (computes = 1; !stops;) continue;
    return NULL;
}

static void round_of_drains(void) {
    pthread_t before[SHORT], thread;
    stops = computes = 0;
    for (uintptr_t i = 0; i < SHORT; i++)
        CHECK(pthread_create(&before[i], NULL, live_shortly, (void *)i) == 0);
    CHECK(pthread_create(&thread, NULL, compute, NULL) == 0);
    while (!computes) sched_yield();
    for (int i = 0; i < DRAINS; i++)
        if (drain_cpu(1, DRAIN_QUIET, NULL) == 0) FAIL("drain %d found no thread on CPU 1", i);
    stops = 1;
    for (int i = 0; i < SHORT; i++) pthread_join(before[i], NULL);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    const double end = seconds_now() + (argc > 1 ? atof(argv[1]) : 2);
    move_to(1);
    for (int i = 0; i < 100; i++) free(malloc(64));
    if (!has_caches()) SKIP("no caches to drain");
    move_to(0); /* and so all that is created here: nobody but the one thread runs on CPU 1 */
    while (seconds_now() < end) round_of_drains();
    CHECK(drain_everything() == 0);
    return 0;
}
