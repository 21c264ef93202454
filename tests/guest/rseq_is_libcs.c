/* Per-CPU caches run on libc's own registration, on a real kernel: the fast path hits. */
#include "guest.h"

int main(void) {
    free(malloc(1));
    CHECK(strstr(statistics(), "\"rseq\":\"libc\""));
    CHECK(has_caches());
    long slow = slow_paths_of_pairs(10000);
    if (slow > 100) FAIL("%ld of 10000 pairs left the fast path", slow);
    return 0;
}
