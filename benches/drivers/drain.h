/* A second thread that drains the measured CPU so many times a second, by homenode's hn_drain_cpu. */
enum { HN_DRAIN_FENCE = 1 };

static struct drainer {
    pthread_t thread;
    int (*drain)(unsigned cpu, int how, size_t *objects);
    long per_second; /* 0: there is no second thread */
    bool dry;        /* wake up as often, but do not drain: what the wake-ups alone cost */
    volatile bool stop;
    long calls;
    long refused;
} drainer;

static inline void *drain_often(void *unused)
{
    (void)unused;
    long period = 1000000000L / drainer.per_second;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!drainer.stop) {
        next.tv_nsec += period;
        next.tv_sec += next.tv_nsec / 1000000000L;
        next.tv_nsec %= 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        if (drainer.dry)
            continue;
        drainer.calls++;
        drainer.refused += drainer.drain((unsigned)home_cpu, HN_DRAIN_FENCE, NULL) < 0;
    }
    return NULL;
}

static inline void start_drainer(long per_second, bool dry)
{
    pthread_attr_t attr;
    drainer.per_second = per_second;
    drainer.dry = dry;
    if (per_second == 0)
        return;
    if (CPU_COUNT(&other_cpus) == 0)
        fail("--drain needs a second CPU for the draining thread");
    *(void **)&drainer.drain = dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    if (!drainer.drain)
        fail("the preloaded library has no hn_drain_cpu: --drain measures homenode only");
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof other_cpus, &other_cpus);
    if (pthread_create(&drainer.thread, &attr, drain_often, NULL) != 0)
        fail("cannot start the draining thread");
}

static inline void stop_drainer(void)
{
    if (drainer.per_second == 0)
        return;
    drainer.stop = true;
    pthread_join(drainer.thread, NULL);
}
