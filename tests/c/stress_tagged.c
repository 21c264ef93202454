/* Tagged-object stress. Every live object names its own address and its holder; an object handed
 * out twice, drained twice or reused while live shows a wrong name. Threads free their own and each
 * other's objects, are interrupted by a handler that allocates, exit and are replaced, and move
 * between CPUs, while the main thread drains CPUs both ways and forks. What is lost is still out at
 * the end, when everything has been freed.
 *
 * -t threads  -s seconds  -f fence drains/s  -q quiet drains/s  -i timer us (0: off)
 * -k forks/s  -r a thread's life in ms (0: for ever)  -p (pin lives to alternating CPUs) */
#include "stock.h"
#include <sys/time.h>

typedef struct { uintptr_t self; uint64_t holder; uint32_t size, pad; } object;
enum { SLOTS = 256, FROM_HANDLERS = 16, FENCE = 1, QUIET = 2, BACKGROUND = 999 };
static const uint64_t IN_TRANSIT = ~0ull;

static object *exchange[SLOTS], *from_handlers[FROM_HANDLERS];
static volatile int stopping;
static long wrong, operations, handled;
static int live_threads, pinned, life_ms, cpus;

static void note(object *o, uint64_t holder, const char *where) {
    if (o->self == (uintptr_t)o && o->holder == holder) return;
    if (__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 3)
        dprintf(2, "%s: %p names %#lx held by %#lx, expected %#lx\n", where, (void *)o,
                (long)o->self, (long)o->holder, (long)holder);
}

static object *make(size_t size, uint64_t holder) {
    object *o = malloc(size);
    if (!o) FAIL("malloc(%zu) is NULL", size);
    o->self = (uintptr_t)o, o->holder = holder, o->size = (uint32_t)size;
    ((unsigned char *)o)[size - 1] = (unsigned char)(size == sizeof *o ? 0 : 0x5a);
    return o;
}

static void end(object *o, uint64_t holder, const char *where) {
    note(o, holder, where);
    if (o->size > sizeof *o && o->size < 8u << 20 && ((unsigned char *)o)[o->size - 1] != 0x5a)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    o->self = 0; /* a stale holder sees this at once */
    free(o);
}

/* Mostly what the caches hold, so that a drain meets a running fast path; now and then the rest. */
static size_t pick_size(uint32_t *state) {
    uint32_t r = next_random(state) >> 8;
    if (!(r & 0x1fff)) return ((size_t)1 << 20) + (r >> 13) * 1024;
    if (!(r & 0x3ff)) return 32768 + (r >> 10) * 16;
    if (!(r & 15)) return 512 + (r >> 10 & 8191);
    return sizeof(object) + (r >> 4) % 496;
}

static void *work(void *slot_and_life) {
    uint64_t id = (uintptr_t)slot_and_life & 0xffff, life = (uintptr_t)slot_and_life >> 16;
    uint32_t x = (uint32_t)(id * 7919 + life * 104729 + 1);
    object *held[SLOTS] = {0};
    if (pinned) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((id + life) % (unsigned)cpus, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    double until = life_ms ? seconds_now() + life_ms * (0.5 + (x & 1023) / 1024.0) / 1000 : 1e18;
    long done = 0;
    for (; !stopping; done++) {
        uint32_t r = next_random(&x) >> 8, k = r & (SLOTS - 1);
        uint64_t holder = id << 32 | life << 8 | k;
        if (!held[k]) {
            held[k] = make(pick_size(&x), holder);
        } else if (r & 0x1f00) {
            end(held[k], holder, "own object");
            held[k] = NULL;
        } else {
            note(held[k], holder, "given object");
            held[k]->holder = IN_TRANSIT;
            object *other = __atomic_exchange_n(&exchange[k], held[k], __ATOMIC_ACQ_REL);
            if (other) end(other, IN_TRANSIT, "taken object");
            held[k] = NULL;
        }
        if (!(done & 1023) && seconds_now() > until) break;
    }
    for (uint32_t k = 0; k < SLOTS; k++)
        if (held[k]) end(held[k], id << 32 | life << 8 | k, "last object");
    __atomic_fetch_add(&operations, done, __ATOMIC_RELAXED);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t heir;
    while (!stopping) {
        if (!pthread_create(&heir, &detached, work, (void *)(uintptr_t)((life + 1) << 16 | id))) return NULL;
        pause_us(1000);
    }
    __atomic_fetch_sub(&live_threads, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

static void on_alarm(int signal_number) {
    (void)signal_number;
    static const uint32_t sizes[] = {24, 48, 112, 900, 5000, 40000};
    long n = __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
    int kept = errno;
    for (int i = 0; i < 3; i++) end(make(sizes[(n + i) % 6], 7), 7, "handler's object");
    object *mine = make(sizes[n % 6], IN_TRANSIT);
    mine = __atomic_exchange_n(&from_handlers[n % FROM_HANDLERS], mine, __ATOMIC_ACQ_REL);
    if (mine) end(mine, IN_TRANSIT, "another handler's object");
    errno = kept;
}

static object *inherited[BACKGROUND];
static void be_the_child(void) {
    long before = wrong;
    uint32_t x = (uint32_t)getpid();
    object *fresh[300];
    for (int i = 0; i < 300; i++) fresh[i] = make(pick_size(&x), 1000u + (unsigned)i);
    for (unsigned i = 0; i < BACKGROUND; i++)
        i % 2 ? end(inherited[i], i, "inherited object") : note(inherited[i], i, "inherited object");
    for (int i = 0; i < 300; i++) end(fresh[i], 1000u + (unsigned)i, "child's object");
    _exit(wrong != before);
}

static void end_what_is_left(void) {
    for (unsigned i = 0; i < BACKGROUND; i++) end(inherited[i], i, "background object");
    for (int i = 0; i < SLOTS; i++)
        if (exchange[i]) end(exchange[i], IN_TRANSIT, "object in transit");
    for (int i = 0; i < FROM_HANDLERS; i++)
        if (from_handlers[i]) end(from_handlers[i], IN_TRANSIT, "a handler's object");
}

int main(int argc, char **argv) {
    int threads = 4, fence = 1000, quiet = 1000, period = 0, forks = 0;
    double duration = 3;
    for (int o; (o = getopt(argc, argv, "t:s:f:q:i:k:r:p")) != -1;)
        if (o == 't') threads = atoi(optarg);
        else if (o == 's') duration = atof(optarg);
        else if (o == 'f') fence = atoi(optarg);
        else if (o == 'q') quiet = atoi(optarg);
        else if (o == 'i') period = atoi(optarg);
        else if (o == 'k') forks = atoi(optarg);
        else if (o == 'r') life_ms = atoi(optarg);
        else if (o == 'p') pinned = 1;
        else FAIL("unknown option");
    int (*drain)(unsigned, int, size_t *) = (int (*)(unsigned, int, size_t *))dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    CHECK(drain || !homenode_required());
    cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const struct stock at_start = drain ? take_stock() : (struct stock){0, 0};
    uint32_t x = 42;
    for (unsigned i = 0; i < BACKGROUND; i++) inherited[i] = make(pick_size(&x), i);
    signal(SIGALRM, on_alarm);
    live_threads = threads;
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, work, (void *)(uintptr_t)(i + 1)));
        pthread_detach(thread);
    }
    sigset_t alarm_only; /* so that the workers are the ones interrupted */
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    struct itimerval every = {{0, period}, {0, period}};
    setitimer(ITIMER_REAL, &every, NULL);

    long drains = 0, pending = 0, refused = 0, children = 0, hung = 0, early_kib = 0;
    size_t brought = 0;
    double start = seconds_now(), next_fence = start, next_quiet = start, next_fork = start, now;
    while ((now = seconds_now()) < start + duration) {
        if (!early_kib && now > start + duration / 3) early_kib = resident_kib();
        int how = fence && now >= next_fence ? FENCE : quiet && now >= next_quiet ? QUIET : 0;
        if (how && drain) {
            size_t objects = 0;
            int got = drain((unsigned)(drains++ / 2 % cpus), how, &objects);
            brought += objects, pending += got == 1, refused += got < 0;
        }
        /* A rate that cannot be met is not caught up with: that would starve the other way. */
        if (how == FENCE) next_fence = (next_fence < now - 0.01 ? now : next_fence) + 1.0 / fence;
        if (how == QUIET) next_quiet = (next_quiet < now - 0.01 ? now : next_quiet) + 1.0 / quiet;
        if (forks && now >= next_fork) {
            next_fork = now + 1.0 / forks;
            pid_t child = fork();
            if (child == 0) be_the_child();
            CHECK(child > 0);
            int status = reap(child, 15);
            children++;
            if (status == HUNG) hung++;
            else if (status) wrong++, dprintf(2, "child status %#x\n", (unsigned)status);
        }
        if (!how) pause_us(20);
    }
    stopping = 1;
    while (__atomic_load_n(&live_threads, __ATOMIC_ACQUIRE) > 0) pause_us(1000);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    await_the_last_thread();
    end_what_is_left();
    long late_kib = resident_kib(), grown = late_kib - early_kib;
    int lost = (early_kib && grown > 96 * 1024) || (drain && has_lost(at_start));
    printf("%d threads %.0f s: %.1f M operations, %ld drains (%ld pending, %ld refused) of %zu objects, "
           "%ld signals, %ld forks (%ld hung), grown %ld KiB, %ld wrong\n",
           threads, duration, operations / 1e6, drains, pending, refused, brought, handled, children,
           hung, grown, wrong);
    return wrong || hung || lost || refused;
}
