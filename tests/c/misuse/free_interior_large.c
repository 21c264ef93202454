/* A page inside a large block: named at once. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *p = malloc(8 << 20);
    printf("%p\n", (void *)(p + 4096));
    fflush(stdout);
    free(p + 4096);
    return 0;
}
