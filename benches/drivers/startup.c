/* What a preload costs a small program: /bin/true, started 200 times. */
#include "frame.h"
#include <spawn.h>
#include <sys/wait.h>

enum { STARTS = 200, STARTS_CHUNK = 10 };

extern char **environ;

static void start_true(void)
{
    char *const argv[] = {"true", NULL};
    pid_t child;
    int status;
    if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) != 0)
        fail("cannot start /bin/true");
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("/bin/true failed");
}

/* CPU time of the children that have ended and of this process, which starts them. */
static double cpu_us(void)
{
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1e6 +
           (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) +
           clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000;
}

/* Microseconds of CPU time a start.  The children inherit the preload and the CPU. */
static void measure_starts(const struct row *row, int unused)
{
    (void)unused;
    start_true();
    for (int c = 0; c < STARTS / STARTS_CHUNK; c++) {
        double start = cpu_us();
        for (int i = 0; i < STARTS_CHUNK; i++)
            start_true();
        chunk_value[c] = (cpu_us() - start) / STARTS_CHUNK;
    }
    print_row(row, STARTS / STARTS_CHUNK);
}

static const struct row rows[] = {
    {"start of /bin/true", measure_starts, NULL, 0, 0},
};

int main(int argc, char **argv)
{
    return run_driver(argc, argv, rows, sizeof rows / sizeof rows[0]);
}
