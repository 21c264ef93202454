/* How much stack a call uses below its caller: measured by painting a stack of our own. */
#ifndef STACK_H
#define STACK_H
#include "check.h"
#include <ucontext.h>

/* Only the upper part is painted, to be fast: what goes deeper counts as all of it. */
enum { STACK_BYTES = 1 << 16, PAINTED = 1 << 12, PAINT = 0xAA, KIBIBYTE = 1024 };
static unsigned char stack[STACK_BYTES], *const painted = stack + STACK_BYTES - PAINTED;
static ucontext_t measurer, measured;

static void do_nothing(void) {}

static inline int bytes_touched_by(void (*act)(void)) {
    memset(painted, PAINT, PAINTED);
    CHECK(getcontext(&measured) == 0);
    measured.uc_stack.ss_sp = stack;
    measured.uc_stack.ss_size = sizeof stack;
    measured.uc_link = &measurer;
    makecontext(&measured, act, 0);
    CHECK(swapcontext(&measurer, &measured) == 0);
    int untouched = 0;
    while (untouched < PAINTED && painted[untouched] == PAINT) untouched++;
    return PAINTED - untouched;
}

/* The bytes that `act` uses beyond what a call of nothing does. */
static inline int depth_of(void (*act)(void)) {
    static int base;
    if (!base) base = bytes_touched_by(do_nothing);
    return bytes_touched_by(act) - base;
}

#define FITS_A_KIBIBYTE(act, size)                                                                 \
    do {                                                                                           \
        const int depth = depth_of(act);                                                           \
        if (depth > KIBIBYTE) FAIL(#act ": %d bytes of stack at size %zu", depth, (size_t)(size)); \
    } while (0)
#endif
