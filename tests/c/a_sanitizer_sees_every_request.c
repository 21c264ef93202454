/* Built with a sanitizer: threads reuse blocks, which is a race to a thread sanitizer that does not see
 * malloc and free. With an argument, a read of a freed block, which an address sanitizer names. */
#include "check.h"

static void *reuse_blocks(void *unused) {
    for (int i = 0; i < 2000; i++) {
        size_t size = 1 + (size_t)i % 1500;
        char *block = malloc(size), *wide;
        CHECK(block && posix_memalign((void **)&wide, 64, size) == 0);
        memset(block, 1, size);
        memset(wide, 1, size);
        block = realloc(block, 2 * size);
        char *zeroed = calloc(1, size);
        CHECK(block && zeroed && zeroed[size - 1] == 0);
        free(block);
        free(wide);
        free(zeroed);
    }
    return unused;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, reuse_blocks, NULL) == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    if (argc > 1) {
        volatile char *block = malloc(40);
        free((void *)block);
        return block[3] & 0;
    }
    return 0;
}
