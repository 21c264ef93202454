/* A small object freed twice: named at the next trim at the latest. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *p = malloc(48);
    printf("%p\n", p);
    fflush(stdout);
    free(p);
    free(p);
    malloc_trim(0);
    return 0;
}
