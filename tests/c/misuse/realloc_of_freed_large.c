/* A large block that was freed is made longer: named at once. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *p = malloc(4 << 20);
    printf("%p\n", p);
    fflush(stdout);
    free(p);
    return realloc(p, 8 << 20) != NULL;
}
