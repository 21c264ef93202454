/* A pointer into the middle of a small object, aligned like an object: named at the next trim. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *p = malloc(256);
    printf("%p\n", (void *)(p + 16));
    fflush(stdout);
    free(p + 16);
    malloc_trim(0);
    return 0;
}
