/* Threads with the smallest legal stack allocate every kind of size, hits and misses. */
#include "check.h"
#include <limits.h>

static void *work(void *unused) {
    (void)unused;
    static const unsigned sizes[] = {1, 24, 100, 1000, 5000, 32768, 40000, 262144, 1 << 20, 5 << 20};
    for (int round = 0; round < 5; round++)
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            void *held[100];
            int count = sizes[s] > 100000 ? 4 : 100;
            for (int i = 0; i < count; i++)
                if ((held[i] = malloc(sizes[s]))) *(char *)held[i] = 1;
                else FAIL("malloc(%u) is NULL", sizes[s]);
            for (int i = 0; i < count; i++) held[i] = realloc(held[i], sizes[s] / 2 + 1);
            for (int i = 0; i < count; i++) free(held[i]);
        }
    return NULL;
}

int main(void) {
    long least = sysconf(_SC_THREAD_STACK_MIN);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)(least > 0 ? least : 16384)) == 0);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], &attributes, work, NULL) == 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    malloc_trim(0);
    return 0;
}
