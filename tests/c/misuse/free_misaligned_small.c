/* A pointer that no allocation can have returned: odd. Named at the next trim at the latest. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *p = malloc(256);
    printf("%p\n", (void *)(p + 1));
    fflush(stdout);
    free(p + 1);
    malloc_trim(0);
    return 0;
}
