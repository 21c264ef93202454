/* A request that finds no memory gets what is parked.  The runner makes the slice small. */
#include "check.h"

enum { MIB = 1 << 20 };

int main(void) {
    static void *held[64];
    size_t most = 2 * MIB;
    void *block;
    while ((block = malloc(most + 2 * MIB))) free(block), most += 2 * MIB;
    if (most > 64 * MIB) SKIP("the slice is not small");
    CHECK((block = malloc(most)));
    free(block);
    int count = 0;
    while (count < 64 && (held[count] = malloc(2 * MIB))) count++;
    if ((size_t)count * 2 * MIB < most) FAIL("%d MiB of %zu", count * 2, most / MIB);
    return 0;
}
