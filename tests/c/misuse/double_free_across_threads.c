/* An object freed by two threads: named at the next trim at the latest. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *release(void *p) {
    free(p);
    return NULL;
}

int main(void) {
    void *p = malloc(200);
    printf("%p\n", p);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, release, p);
        pthread_join(thread, NULL);
    }
    malloc_trim(0);
    return 0;
}
