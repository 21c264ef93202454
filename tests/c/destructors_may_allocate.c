/* Destructors of pthread keys and of C++-style thread-locals, atexit handlers and library
 * destructors allocate and free, each also what an earlier one left behind. Case F4. */
#include "check.h"
#include <limits.h>

static pthread_key_t keys[3];
static __thread void *left_behind;
static void *from_main;
extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;

static void in_key_destructor(void *value) {
    static __thread int rounds;
    free(value);
    if (allocate_each_kind()) FAIL("objects changed in a key destructor");
    /* Set again: the destructor of the last iteration runs after everybody else's. */
    if (++rounds < 3 * PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(keys[rounds % 3], malloc(64 + (size_t)rounds));
}

static void in_thread_local_destructor(void *value) {
    free(value);
    free(left_behind);
    left_behind = malloc(3000);
    if (allocate_each_kind()) FAIL("objects changed in a thread-local's destructor");
    free(left_behind);
}

static void *thread(void *unused) {
    (void)unused;
    left_behind = malloc(40);
    for (int i = 0; i < 3; i++) pthread_setspecific(keys[i], malloc(100));
    __cxa_thread_atexit_impl(in_thread_local_destructor, malloc(500), __dso_handle);
    return malloc(77);
}

static void at_exit(void) {
    free(from_main);
    from_main = malloc(70000);
    if (!from_main || allocate_each_kind()) FAIL("objects changed in an atexit handler");
}

__attribute__((destructor)) static void at_unload(void) {
    free(from_main);
    if (allocate_each_kind()) FAIL("objects changed in a library destructor");
}

int main(void) {
    for (int i = 0; i < 3; i++) CHECK(pthread_key_create(&keys[i], in_key_destructor) == 0);
    for (int round = 0; round < 200; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
        for (int i = 0; i < 4; i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0);
            free(result);
        }
    }
    from_main = malloc(123);
    CHECK(atexit(at_exit) == 0);
    pthread_setspecific(keys[0], malloc(10));
    __cxa_thread_atexit_impl(in_thread_local_destructor, malloc(10), __dso_handle);
    return 0;
}
