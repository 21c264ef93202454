/* A block freed twice, the second time after a trim took its pages away: still named. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *p = malloc(40000);
    printf("%p\n", p);
    fflush(stdout);
    free(p);
    malloc_trim(0);
    free(p);
    return 0;
}
