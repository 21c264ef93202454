/* A large block freed twice: named at once. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *p = malloc(4 << 20);
    printf("%p\n", p);
    fflush(stdout);
    free(p);
    free(p);
    return 0;
}
