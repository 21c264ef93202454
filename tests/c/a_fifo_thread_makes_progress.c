/* A SCHED_FIFO thread wants what a preempted ordinary thread on the same CPU may hold: it must not
 * spin for it (the kernel would only let the holder run after the real-time throttle, a second
 * later). Skipped without the permission. Case F6. */
#include "check.h"

static void misses(uint32_t *x) {
    void *held[64];
    size_t size = 1000 + (next_random(x) >> 14);
    for (int i = 0; i < 64; i++) {
        if (!(held[i] = malloc(size))) FAIL("malloc(%zu) is NULL", size);
        *(char *)held[i] = 1;
    }
    for (int i = 0; i < 64; i++) free(held[i]);
}

static void *ordinary(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed;
    while (!churn_stops) misses(&x);
    return NULL;
}

static double worst;
static void *real_time(void *unused) {
    (void)unused;
    uint32_t x = 99;
    for (int i = 0; i < 1500; i++) {
        double start = seconds_now();
        misses(&x);
        double took = seconds_now() - start;
        if (took > worst) worst = took;
        pause_us(300);
    }
    return NULL;
}

int main(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);

    pthread_t workers[3], fifo;
    for (int i = 0; i < 3; i++) CHECK(!pthread_create(&workers[i], NULL, ordinary, (void *)(uintptr_t)(i + 1)));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    struct sched_param priority = {.sched_priority = 10};
    pthread_attr_setschedparam(&attributes, &priority);
    int refused = pthread_create(&fifo, &attributes, real_time, NULL);
    if (refused == EPERM) SKIP("no permission for SCHED_FIFO");
    CHECK(refused == 0);
    pthread_join(fifo, NULL);
    churn_stops = 1;
    for (int i = 0; i < 3; i++) pthread_join(workers[i], NULL);
    /* Far below the throttle period of a second, far above any honest wait. */
    if (worst > 0.5) FAIL("64 allocations took %.3f s", worst);
    return 0;
}
