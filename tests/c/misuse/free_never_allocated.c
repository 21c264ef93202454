/* An address inside the reserved space where nothing was ever allocated: named at once. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *p = (char *)malloc(48) + (64 << 20);
    printf("%p\n", (void *)p);
    fflush(stdout);
    free(p);
    return 0;
}
