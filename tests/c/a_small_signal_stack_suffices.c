/* A handler on the smallest legal signal stack, plus 1.5 KiB, allocates sizes that hit and miss.
 * The stack ends at an inaccessible page, so that one byte too much is a fault. Run it with
 * LD_BIND_NOW=1: the lazy binder alone needs more stack than this. */
#include "check.h"
#include <sys/mman.h>

enum { BUDGET = 1536, FILL = 0xa5, SIZES = 14, HELD = 200 };
static const size_t sizes[SIZES] = {1,     16,    100,    1000,   3000,   9000,    20000,
                                    32768, 40000, 100000, 262144, 300000, 1 << 20, 5 << 20};
static unsigned char *lowest;
static volatile size_t kind;
static volatile int failed;
static void *held[HELD];

static void on_signal(int signal_number) {
    (void)signal_number;
    size_t size = sizes[kind];
    int count = size > 100000 ? 6 : HELD; /* enough small ones to run caches and spans dry */
    for (int i = 0; i < count; i++) {
        if (!(held[i] = malloc(size))) failed = 1;
        else *(char *)held[i] = 1;
    }
    for (int i = 0; i < count; i++) free(held[i]);
    if (!(held[0] = realloc(calloc(1, size), size * 2))) failed = 1;
    free(held[0]);
}

int main(void) {
    long page = sysconf(_SC_PAGESIZE), least = sysconf(_SC_MINSIGSTKSZ);
    CHECK(least > 0);
    size_t length = ((size_t)least + BUDGET + 15) & ~(size_t)15;
    size_t mapped = (length + (size_t)page - 1) / (size_t)page * (size_t)page;
    unsigned char *map = mmap(NULL, mapped + (size_t)page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED && mprotect(map, (size_t)page, PROT_NONE) == 0);
    lowest = map + page;
    memset(lowest, FILL, length);

    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    stack_t small = {.ss_sp = lowest, .ss_size = length};
    CHECK(sigaltstack(&small, NULL) == 0);
    for (kind = 0; kind < SIZES; kind++) {
        raise(SIGUSR1);
        if (failed) FAIL("an allocation of %zu failed", sizes[kind]);
    }
    size_t unused = 0;
    while (unused < length && lowest[unused] == FILL) unused++;
    if (unused == 0) FAIL("the whole signal stack of %zu bytes was used", length);
    return 0;
}
