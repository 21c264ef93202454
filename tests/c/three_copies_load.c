/* The library opens three times under different names (three instances in one process), each works
 * from several threads, and closing them while those threads live is safe. argv: paths. Case P2. */
#include "check.h"

enum { THREADS = 4, COPIES = 8 };
typedef struct { void *(*malloc)(size_t); void (*free)(void *); void *(*realloc)(void *, size_t); } api;
static api copies[COPIES];
static int count;
static pthread_barrier_t used, closed;

static void use(const api *a, unsigned seed) {
    uint32_t x = seed;
    void *held[64] = {0};
    size_t size[64];
    for (int i = 0; i < 4000; i++) {
        unsigned k = next_random(&x) >> 26;
        if (held[k] && !edges_hold(held[k], size[k], (unsigned char)k)) FAIL("a live object changed");
        a->free(held[k]);
        size[k] = 1 + (next_random(&x) >> (i % 50 ? 20 : 12));
        if (!(held[k] = a->malloc(size[k]))) FAIL("malloc is NULL");
        mark_edges(held[k], size[k], (unsigned char)k);
    }
    for (int k = 0; k < 64; k++) a->free(a->realloc(held[k], 200));
}

static void *thread(void *seed) {
    for (int i = 0; i < count; i++) use(&copies[i], (unsigned)(uintptr_t)seed);
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&closed);
    return NULL; /* thread-exit hooks of the closed copies run here */
}

int main(int argc, char **argv) {
    void *handles[COPIES];
    for (count = 0; count + 1 < argc && count < COPIES; count++) {
        void *h = handles[count] = dlopen(argv[count + 1], RTLD_NOW | RTLD_LOCAL);
        if (!h) FAIL("dlopen: %s", dlerror());
        api *a = &copies[count];
        *(void **)&a->malloc = dlsym(h, "malloc");
        *(void **)&a->free = dlsym(h, "free");
        *(void **)&a->realloc = dlsym(h, "realloc");
        CHECK(a->malloc && a->free && a->realloc);
        for (int i = 0; i < count; i++) CHECK(copies[i].malloc != a->malloc);
        use(a, 7);
    }
    CHECK(count > 0);
    pthread_barrier_init(&used, NULL, THREADS + 1);
    pthread_barrier_init(&closed, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)(i + 1)));
    pthread_barrier_wait(&used);
    for (int i = 0; i < count; i++) CHECK(dlclose(handles[i]) == 0);
    pthread_barrier_wait(&closed);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
