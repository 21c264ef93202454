/* The length of a large block that was freed is asked for: named at once. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *p = malloc(4 << 20);
    printf("%p\n", p);
    fflush(stdout);
    free(p);
    return malloc_usable_size(p) != 0;
}
