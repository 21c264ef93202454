/* Handlers that interrupt slow paths, allocate and free leave nothing behind: however many there
 * were, the same compounds are in use.  A trapped call makes each trim an interruption, so resident
 * memory says nothing here. */
#include "seccomp.h"
#include "stats.h"

enum { BYTES = 300000, LEVEL = 500, HANDLERS = 2000, ALLOWED = 20 };
static volatile int handled;

static void allocate_and_free(int signal_number) {
    (void)signal_number;
    void *p = malloc(BYTES);
    if (!p) FAIL("malloc in a handler is NULL");
    mark_edges(p, BYTES, 1);
    free(p);
    handled++;
}

static long compounds_used_after(int handlers) {
    while (handled < handlers) {
        const int before = handled;
        void *p = malloc(3 << 20);
        CHECK(p);
        mark_edges(p, 3 << 20, 1);
        free(p);
        malloc_trim(0);
        if (handled == before) FAIL("no handler ran");
    }
    return statistic("compounds") - statistic("compounds_free");
}

int main(void) {
    void *volatile first = malloc(1); /* a handler that interrupts the first request of all gets NULL */
    free(first);
    CHECK(signal(SIGSYS, allocate_and_free) != SIG_ERR);
    trap_call(SYS_madvise);
    const long level = compounds_used_after(LEVEL);
    const long grown = compounds_used_after(LEVEL + HANDLERS) - level;
    if (grown > ALLOWED) FAIL("%d handlers left %ld compounds in use", HANDLERS, grown);
    return 0;
}
