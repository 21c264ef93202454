/* A signal handler that interrupts malloc forks; the child allocates in the handler and ends, or
 * (every other one) returns into the interrupted call and goes on allocating. A supervisor watches
 * progress, since the fork itself may hang in the parent. argv: forks, churning threads. Case F2,
 * second half; glibc's own malloc does not pass. */
#include "check.h"
#include <sys/mman.h>
#include <sys/time.h>

static struct { volatile int done, hung, failed, wanted, live; } *shared;
static volatile sig_atomic_t in_child;

static void fork_now(int signal_number) {
    (void)signal_number;
    if (in_child || shared->done >= shared->wanted) return;
    int kept = errno;
    pid_t child = fork();
    if (child == 0) {
        in_child = 1;
        if (shared->done % 2 == 0) _exit(allocate_each_kind() ? 2 : 0);
        if (allocate_each_kind()) _exit(3);
        errno = kept;
        return;
    }
    int status = child < 0 ? 1 : reap(child, 5);
    if (status == HUNG) shared->hung++;
    else if (status) shared->failed++, dprintf(2, "child status %#x\n", (unsigned)status);
    shared->done++;
    errno = kept;
}

static void work(int threads) {
    pthread_t churners[16];
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, NULL); /* inherited: only this thread is interrupted */
    start_churn(churners, threads);
    signal(SIGALRM, fork_now);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    free(malloc(1)); /* the very first one may not be interrupted */
    struct itimerval every = {{0, 3000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, NULL);
    uint32_t x = 1;
    for (int left = 3000; shared->done < shared->wanted && left > 0;) {
        uint32_t r = next_random(&x) >> 8;
        size_t size = r & 63 ? 1 + (r >> 12) : 1 + (size_t)(r >> 12) * 100;
        void *p = malloc(size);
        if (!p) _exit(4);
        mark_edges(p, size, 9);
        free(p);
        if (in_child) left--;
    }
    if (in_child) _exit(allocate_each_kind() ? 5 : 0);
    _exit(0);
}

int main(int argc, char **argv) {
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    shared->wanted = argc > 1 ? atoi(argv[1]) : 40;
    int threads = argc > 2 ? atoi(argv[2]) : 2, stuck = 0;
    while (shared->done < shared->wanted && stuck < 3) {
        pid_t worker = fork();
        CHECK(worker >= 0);
        if (worker == 0) work(threads);
        int status = 0, seen = -1;
        double last = seconds_now();
        for (; waitpid(worker, &status, WNOHANG) == 0; pause_us(5000)) {
            if (shared->done != seen) seen = shared->done, last = seconds_now();
            if (seconds_now() - last < 8) continue;
            stuck++, shared->done++, shared->hung++;
            kill(worker, SIGKILL);
            waitpid(worker, &status, 0);
            status = 0;
            break;
        }
        if (status) FAIL("the forking process ended with status %#x", (unsigned)status);
    }
    if (shared->hung || shared->failed)
        FAIL("%d forks: %d hung, %d failed", shared->done, shared->hung, shared->failed);
    return 0;
}
