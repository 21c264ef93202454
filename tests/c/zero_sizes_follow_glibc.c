/* malloc(0) and realloc(NULL,0) give distinct pointers; realloc(p,0) frees and gives NULL. */
#include "check.h"

int main(void) {
    void *a = malloc(0), *b = malloc(0), *c = calloc(0, 8), *d = calloc(8, 0), *e = realloc(NULL, 0);
    CHECK(a && b && c && d && e);
    CHECK(a != b && c != d && a != e);
    free(a), free(b), free(c), free(d), free(e);

    void *p = malloc(100);
    CHECK(p);
    errno = 1234;
    CHECK(realloc(p, 0) == NULL);
    CHECK(errno == 1234);
    p = malloc(5 << 20);
    CHECK(p && realloc(p, 0) == NULL);

    p = malloc(10);
    CHECK(p && reallocarray(p, 0, 16) == NULL);
    p = reallocarray(NULL, 0, 16);
    CHECK(p);
    free(p);

    /* realloc(p,0) must really free, or a loop of it grows without end. */
    long before = 0;
    for (int i = 0; i < 2000; i++) {
        p = malloc(200000);
        CHECK(p);
        memset(p, 1, 200000);
        CHECK(realloc(p, 0) == NULL);
        if (i == 100) before = resident_kib();
    }
    CHECK(resident_kib() < before + 64 * 1024);
    return 0;
}
