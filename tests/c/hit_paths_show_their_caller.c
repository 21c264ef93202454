/* Calls each hit path in turn, for a debugger that stops inside. */
#include "check.h"

static void *volatile block;
void *at_malloc, *at_free, *at_aligned_alloc, *at_posix_memalign; /* for the debugger */

__attribute__((noinline)) static void the_caller(void) {
    void *other;
    block = malloc(100);
    free(block);
    block = calloc(3, 40);
    free(block);
    block = aligned_alloc(64, 128);
    free(block);
    CHECK(posix_memalign(&other, 64, 100) == 0);
    free(other);
}

int main(void) {
    at_malloc = dlsym(RTLD_DEFAULT, "malloc");
    at_free = dlsym(RTLD_DEFAULT, "free");
    at_aligned_alloc = dlsym(RTLD_DEFAULT, "aligned_alloc");
    at_posix_memalign = dlsym(RTLD_DEFAULT, "posix_memalign");
    for (int i = 0; i < 40; i++) the_caller(); /* every class has objects in the cache now */
    for (int i = 0; i < 1000; i++) the_caller();
    return 0;
}
