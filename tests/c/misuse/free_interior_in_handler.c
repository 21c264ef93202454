/* A handler that interrupts malloc frees a pointer into a live object: named before it is written. */
#include "../seccomp.h"

enum { BYTES = 1000, INSIDE = 512 };
static unsigned char *object;

static void release(int signal_number) {
    (void)signal_number;
    free(object + INSIDE);
}

static void look(int signal_number) {
    (void)signal_number;
    for (int i = 0; i < BYTES; i++)
        if (object[i] != 7) FAIL("byte %d of a live object was written", i);
    signal(SIGABRT, SIG_DFL);
}

int main(void) {
    static void *kept[KEPT_BLOCKS];
    object = malloc(BYTES);
    memset(object, 7, BYTES);
    printf("%p\n", (void *)(object + INSIDE));
    fflush(stdout);
    signal(SIGABRT, look);
    signal(SIGSYS, release);
    trap_call(SYS_madvise);
    give_back_and_grow(kept);
    malloc_trim(0);
    return 0;
}
