/* free(NULL) as the very first call of a process, before any constructor, is harmless.
 * Without check.h, whose constructor would look symbols up first. */
#include <malloc.h>
#include <stdlib.h>

static volatile size_t usable = 1;

static void first(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    free(NULL);
    usable = malloc_usable_size(NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*run_first)(int, char **, char **) = first;

int main(void) {
    void *p = malloc(10);
    free(p);
    return !p || usable != 0;
}
