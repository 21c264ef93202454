/* malloc and free, hits and misses of every kind, use at most 1 KiB of stack below their caller:
 * measured by painting a stack of our own. Every other free comes from another CPU, so that with
 * several nodes objects also go home. */
#include "check.h"
#include <ucontext.h>

enum { STACK = 1 << 16, PAINT = 0xAA, ALLOWED = 1024, OBJECTS = 4000 };
static unsigned char stack[STACK];
static ucontext_t caller, callee;
static void *(*volatile allocate)(size_t) = malloc;
static void (*volatile release)(void *) = free;
static void *volatile block;
static volatile size_t size;
static volatile enum { NOTHING, ALLOCATE, RELEASE } step;

static void act(void) {
    if (step == ALLOCATE) block = allocate(size);
    if (step == RELEASE) release(block);
}

static int depth_of(int what) {
    step = what;
    memset(stack, PAINT, sizeof stack);
    CHECK(getcontext(&callee) == 0);
    callee.uc_stack.ss_sp = stack;
    callee.uc_stack.ss_size = sizeof stack;
    callee.uc_link = &caller;
    makecontext(&callee, act, 0);
    CHECK(swapcontext(&caller, &callee) == 0);
    int untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT) untouched++;
    return STACK - untouched;
}

static void run_on(unsigned cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* one CPU alone is fine, too */
}

int main(void) {
    static void *held[OBJECTS];
    const int base = depth_of(NOTHING);
    int deepest = 0;
    for (size = 1; size < 4000000; size += size < 1000 ? 24 : size / 12) {
        const int count = size < 2000 ? OBJECTS : 40;
        for (int i = 0; i < count; i++) {
            int depth = depth_of(ALLOCATE) - base;
            CHECK((held[i] = block));
            if (depth > deepest) deepest = depth;
        }
        for (int i = 0; i < count; i++) {
            if (i % (count / 4) == 0) run_on((unsigned)(i / (count / 4)) % 2);
            block = held[i];
            int depth = depth_of(RELEASE) - base;
            if (depth > deepest) deepest = depth;
        }
        if (deepest > ALLOWED) FAIL("%d bytes of stack at size %zu", deepest, size);
    }
    return 0;
}
