/* A large block freed twice, with another one freed in between: named at once. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *p = malloc(4 << 20), *q = malloc(6 << 20);
    printf("%p\n", p);
    fflush(stdout);
    free(p);
    free(q);
    free(p);
    return 0;
}
