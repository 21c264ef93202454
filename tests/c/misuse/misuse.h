/* What the misuse programs share.  A program prints the address that it misuses, does so, says that it
 * survived the call, and then drains: what small blocks' misuse is named by in default mode. */
#ifndef MISUSE_H
#define MISUSE_H
#include "../check.h"

static inline void announce(const volatile void *block) {
    printf("%p\n", (void *)block);
    fflush(stdout);
}

static inline void survived(void) {
    puts("survived");
    fflush(stdout);
}

/* Any call of the allocator: in full mode it looks at the blocks that were freed last. */
static inline void next_call(void) { free(malloc(1)); }

static inline void drain(void) {
    int (*all)(int, size_t *);
    *(void **)&all = dlsym(RTLD_DEFAULT, "hn_drain_all");
    if (all) all(0, NULL);
}

/* The calls of C23 and C++, from the library: older libcs have none. */
static inline void *entry(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) FAIL("no %s", name);
    return found;
}
#endif
