/* In a slice that is full of freed objects of one size, other sizes find room again, and nobody
 * needs to call malloc_trim.  The runner makes the slice small. */
#include "check.h"

enum { MANY = 2000000 };
static void *held[MANY];

static int fill(size_t size) {
    int count = 0;
    while (count < MANY && (held[count] = malloc(size))) count++;
    if (count == MANY) SKIP("the slice is not small");
    return count;
}

static void free_in_random_order(int count) {
    uint32_t seed = 1;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)(next_random(&seed) >> 8) % (i + 1);
        void *p = held[i];
        held[i] = held[other], held[other] = p;
    }
    for (int i = 0; i < count; i++) free(held[i]);
}

int main(void) {
    static const size_t sizes[] = {(size_t)3 << 20, 1 << 20, 300000, 40000, 4096, 512, 64};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    const int fitted = fill(sizes[0]);
    free_in_random_order(fitted);
    for (int i = 1; i < COUNT; i++) {
        free_in_random_order(fill(sizes[i]));
        const int fits = fill(sizes[0]);
        free_in_random_order(fits);
        if (fits < fitted / 2)
            FAIL("after %zu bytes: %d large blocks where %d fitted", sizes[i], fits, fitted);
    }
    return 0;
}
