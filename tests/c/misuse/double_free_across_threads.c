/* An object freed by two threads. */
#include "misuse.h"

static void *release(void *p) {
    free(p);
    return NULL;
}

int main(void) {
    void *p = malloc(200);
    announce(p);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, release, p);
        pthread_join(thread, NULL);
    }
    survived();
    drain();
    return 0;
}
