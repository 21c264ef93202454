/* Threads free each other's blocks, come and go, are interrupted by handlers that allocate, and the process forks:
 * with every call checked, that names no fault. One fault by one thread amid it is named, with its address, which
 * goes to standard output before. argv: threads, ms, "limited" or "free" memory, and a fault or "none". */
#include "check.h"
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>

enum { SLOTS = 256, LIFE_MS = 40 };
struct block {
    size_t size;
    struct block *self;
};
static _Atomic(struct block *) exchange[SLOTS], from_handlers[SLOTS];
static _Atomic int running;
static volatile int stopping;

static void end_block(struct block *b) {
    if (!b) return;
    if (b->self != b || (b->size > sizeof *b && ((unsigned char *)b)[b->size - 1] != 7))
        FAIL("%p of %zu bytes has changed", (void *)b, b->size);
    free(b);
}

static struct block *begin_block(struct block *b, size_t size) {
    if (!b) return NULL; /* memory may be limited */
    b->size = size;
    b->self = b;
    if (size > sizeof *b) ((unsigned char *)b)[size - 1] = 7;
    return b;
}

static struct block *take(uint32_t *state) {
    uint32_t r = next_random(state) >> 8;
    size_t size = sizeof(struct block) + (r >> 12) % 2000;
    if (!(r & 0x3f0)) size += (r >> 12) * 16;
    if (!(r & 0x3ff0)) size += (size_t)1 << 20;
    void *p = NULL;
    switch (r & 15) {
    case 0: p = calloc(1, size); break;
    case 1: p = aligned_alloc(64, size); break;
    case 2:
        if (posix_memalign(&p, 256, size)) p = NULL;
        break;
    case 3:
        if (!(p = realloc(malloc(size / 2 + 1), size))) return NULL;
        break;
    default: p = malloc(size);
    }
    if (p && malloc_usable_size(p) < size) FAIL("%zu bytes are not usable", size);
    return begin_block((struct block *)p, size);
}

static void on_alarm(int unused) {
    static _Atomic unsigned turn;
    int saved = errno;
    (void)unused;
    struct block *mine = begin_block((struct block *)malloc(100), 100);
    end_block(atomic_exchange_explicit(&from_handlers[turn++ % SLOTS], mine, memory_order_acq_rel));
    errno = saved;
}

static void *work(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed;
    double end = seconds_now() + LIFE_MS / 1e3;
    do {
        struct block *b = take(&x);
        end_block(atomic_exchange_explicit(&exchange[next_random(&x) >> 24], b, memory_order_acq_rel));
    } while (!stopping && seconds_now() < end);
    running--;
    return NULL;
}

static char *volatile victim;
static void free_it(void) { free(victim); }
static void *free_elsewhere(void *unused) { return free_it(), unused; }

/* Sizes that the churn has not, so that nobody gets the memory between two steps of a fault. */
static void plant(const char *fault) {
    const size_t size = 300001;
    pthread_t other;
    CHECK(victim = (char *)malloc(size));
    dprintf(1, "%p\n", (void *)victim);
    if (!strcmp(fault, "overflow")) victim[size] = 1, free_it();
    if (!strcmp(fault, "double_free")) free_it(), free_it();
    if (!strcmp(fault, "interior")) victim += 4096, free_it();
    if (!strcmp(fault, "realloc")) free_it(), victim = (char *)realloc(victim, 10);
    if (!strcmp(fault, "write_after_free")) free_it(), victim[100] = 1;
    if (!strcmp(fault, "elsewhere")) {
        CHECK(!pthread_create(&other, NULL, free_elsewhere, NULL) && !pthread_join(other, NULL));
        free_it();
    }
}

/* A child ends at once or by exit, which looks at all blocks; or has the fault. */
static void fork_one(int number, const char *fault) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
        if (allocate_each_kind()) _exit(2);
        if (fault) plant(fault);
        if (number % 2) exit(0);
        _exit(0);
    }
    int status = reap(child, 20);
    if (status == HUNG) FAIL("a child hangs");
    if (fault && WIFSIGNALED(status)) raise(WTERMSIG(status));
    if (status) FAIL("a child ended with %#x", status);
}

int main(int argc, char **argv) {
    CHECK(argc > 4);
    const int threads = atoi(argv[1]);
    const double start = seconds_now(), end = start + atoi(argv[2]) / 1e3;
    const char *fault = argv[4], *childs = !strncmp(fault, "child_", 6) ? fault + 6 : NULL;
    int planted = !strcmp(fault, "none");
    if (!strcmp(argv[3], "limited")) {
        struct rlimit limit = {(rlim_t)256 << 20, (rlim_t)256 << 20};
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    pthread_attr_t small;
    CHECK(!pthread_attr_init(&small) && !pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED));
    CHECK(!pthread_attr_setstacksize(&small, 256 << 10));
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, NULL) == 0);
    for (uintptr_t number = 1; seconds_now() < end; number++) {
        pthread_t thread;
        while (running < threads) {
            running++;
            if (pthread_create(&thread, &small, work, (void *)(number++ * 7919))) FAIL("no thread");
        }
        if (number % 4 == 0) fork_one((int)number / 4, NULL);
        if (!planted && seconds_now() > (start + end) / 2) {
            planted = 1;
            if (childs) fork_one(1, childs);
            else plant(fault);
        }
        pause_us(2000);
    }
    stopping = 1;
    while (running) pause_us(1000);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    for (int i = 0; i < SLOTS; i++) end_block(exchange[i]), end_block(from_handlers[i]);
    return 0;
}
