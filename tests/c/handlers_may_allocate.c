/* Signal handlers allocate and free, their own objects and each other's, while the threads they
 * interrupt do the same and another thread drains both ways. argv: seconds, threads, timer period
 * in us (0: no signals, the only setting glibc's own malloc survives). Case F3. */
#include "check.h"
#include <sys/time.h>

typedef struct { uintptr_t self; size_t size; } object;
enum { SHARED = 64 };
static object *parcels[SHARED];
static volatile long handled, wrong;

static object *make(size_t size) {
    object *o = malloc(size);
    if (!o) FAIL("malloc(%zu) is NULL", size);
    o->self = (uintptr_t)o, o->size = size;
    ((unsigned char *)o)[size - 1] = o->size == sizeof *o ? ((unsigned char *)o)[size - 1] : 0x5a;
    return o;
}

static void end(object *o) {
    if (!o) return;
    size_t size = o->size;
    if (o->self != (uintptr_t)o || (size > sizeof *o && ((unsigned char *)o)[size - 1] != 0x5a))
        __sync_fetch_and_add(&wrong, 1);
    o->self = 0;
    free(o);
}

static void on_alarm(int signal_number) {
    (void)signal_number;
    static const unsigned short sizes[] = {16, 48, 100, 700, 3000, 20000, 40000};
    long n = __sync_fetch_and_add(&handled, 1);
    int kept = errno;
    for (int i = 0; i < 4; i++) end(make(sizes[(n + i) % 7]));
    end(__atomic_exchange_n(&parcels[n % SHARED], make(sizes[n % 7]), __ATOMIC_ACQ_REL));
    errno = kept;
}

static void *work(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed;
    object *held[128] = {0};
    while (!churn_stops) {
        uint32_t r = next_random(&x) >> 8;
        end(held[r & 127]);
        held[r & 127] = make(16 + ((r >> 7 & 63) ? r >> 15 : (r >> 13) * 32));
        if ((r & 0xf00) == 0)
            end(__atomic_exchange_n(&parcels[r % SHARED], make(64), __ATOMIC_ACQ_REL));
    }
    for (int i = 0; i < 128; i++) end(held[i]);
    return NULL;
}

int main(int argc, char **argv) {
    double duration = argc > 1 ? atof(argv[1]) : 2;
    int count = argc > 2 ? atoi(argv[2]) : 3, period = argc > 3 ? atoi(argv[3]) : 200;
    pthread_t threads[16];
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < count; i++) CHECK(!pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)));
    sigset_t alarm_only; /* the drainer stays out, so that the workers are the ones interrupted */
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
    struct itimerval every = {{0, period}, {0, period}};
    setitimer(ITIMER_REAL, &every, NULL);
    int (*drain)(unsigned, int, size_t *) = (int (*)(unsigned, int, size_t *))dlsym(RTLD_DEFAULT, "hn_drain_cpu");
    unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF), turn = 0;
    for (double stop = seconds_now() + duration; seconds_now() < stop; pause_us(50), turn++)
        if (drain) drain(turn / 2 % cpus, 1 + (int)(turn % 2), NULL);
    churn_stops = 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    if (wrong) FAIL("%ld objects with a wrong tag after %ld signals", wrong, handled);
    if (period && handled < 10) FAIL("only %ld signals handled", handled);
    return 0;
}
