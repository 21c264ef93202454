/* A handler that interrupts malloc frees a pointer that was never handed out: named, not written. */
#include "../seccomp.h"

static void *bad;

static void release(int signal_number) {
    (void)signal_number;
    free(bad);
}

int main(void) {
    static void *kept[KEPT_BLOCKS];
    bad = (void *)((uintptr_t)malloc(64) + ((uintptr_t)1 << 34));
    printf("%p\n", bad);
    fflush(stdout);
    signal(SIGSYS, release);
    trap_call(SYS_madvise);
    give_back_and_grow(kept);
    return 0;
}
