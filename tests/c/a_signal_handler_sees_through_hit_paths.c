/* A profiler's signal may come at any instruction: from the hit paths, too, it unwinds to main, as the
 * frames of libhomenode's own functions say. */
#include "check.h"
#include <execinfo.h>
#include <sys/time.h>
#include <ucontext.h>

static char *low, *high; /* the library's code */
static volatile sig_atomic_t inside, lost;
static char *volatile lost_at;
static void *volatile in_main; /* where use_every_hit_path returns to */

static void on_alarm(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
#ifdef __aarch64__
    char *at = (char *)((ucontext_t *)context)->uc_mcontext.pc;
#else
    char *at = (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#endif
    if (at < low || at >= high) return;
    void *frames[64];
    int depth = backtrace(frames, 64);
    inside++;
    for (int i = 0; i < depth; i++)
        if (frames[i] == in_main) return;
    lost++;
    lost_at = at;
}

static void find_the_code(void) {
    char line[512];
    Dl_info here;
    void *malloc_here = dlsym(RTLD_DEFAULT, "malloc");
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps && dladdr(malloc_here, &here));
    while (fgets(line, sizeof line, maps)) {
        char *from, *to;
        if (sscanf(line, "%p-%p", (void **)&from, (void **)&to) == 2 && from <= (char *)malloc_here &&
            (char *)malloc_here < to)
            low = from, high = to;
    }
    fclose(maps);
    CHECK(low);
}

__attribute__((noinline)) static void use_every_hit_path(void) {
    in_main = __builtin_return_address(0);
    void *held[8], *aligned;
    for (int i = 0; i < 8; i++) CHECK((held[i] = i & 1 ? calloc(1, 40) : malloc(100)));
    for (int i = 0; i < 8; i++) free(held[i]);
    CHECK(posix_memalign(&aligned, 64, 100) == 0);
    free(aligned);
    free(aligned_alloc(64, 64));
}

int main(void) {
    void *frames[4];
    backtrace(frames, 4); /* loads what it needs, here and not in a handler */
    find_the_code();
    struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval often = {{0, 250}, {0, 250}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (double end = seconds_now() + 20; inside < 400 && seconds_now() < end;)
        for (int i = 0; i < 1000; i++) use_every_hit_path();
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    if (inside == 0) FAIL("no signal came inside the library");
    if (lost) FAIL("%d of %d traces are lost, one at offset %#lx of the code", lost, inside, (long)(lost_at - low));
    return 0;
}
