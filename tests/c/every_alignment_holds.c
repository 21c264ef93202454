/* Alignments 2^3 to 2^30, sizes at their edges, realloc up and down: aligned, contents kept.
 * Only the edges are touched, so that GiB requests cost no memory. */
#include "check.h"

static void resize(char **p, size_t *size, size_t wanted, unsigned char tag) {
    size_t kept = *size < wanted ? *size : wanted;
    if (kept) (*p)[kept - 1] = (char)tag;
    char *moved = realloc(*p, wanted);
    if (!moved) FAIL("realloc from %zu to %zu is NULL", *size, wanted);
    if (kept && ((unsigned char)moved[0] != tag || (unsigned char)moved[kept - 1] != tag))
        FAIL("realloc from %zu to %zu lost contents", *size, wanted);
    *p = moved, *size = wanted;
    mark_edges(moved, wanted, tag);
}

static void one(size_t alignment, size_t size, unsigned char tag) {
    void *got = NULL;
    int failed = posix_memalign(&got, alignment, size);
    if (failed) FAIL("posix_memalign(%zu, %zu) = %d", alignment, size, failed);
    if ((uintptr_t)got % alignment) FAIL("%p is not aligned to %zu", got, alignment);
    if (malloc_usable_size(got) < size) FAIL("usable size below %zu", size);
    mark_edges(got, size, tag);
    char *p = got;
    if (!edges_hold(p, size, tag)) FAIL("edges of %zu bytes changed", size);
    if (size && size <= (size_t)16 << 20) {
        resize(&p, &size, size * 2 + 1, tag);
        resize(&p, &size, size / 3 + 1, tag);
        resize(&p, &size, size + 4096, tag);
        resize(&p, &size, 9, tag);
    }
    free(p);
}

int main(void) {
    unsigned char tag = 1;
    for (size_t alignment = 8; alignment <= (size_t)1 << 30; alignment *= 2) {
        const size_t sizes[] = {0, 1, 8, 9, 63, 1024, 4097, 32768, 32769, alignment - 1, alignment,
                                alignment + 1, alignment / 2 + 1};
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) one(alignment, sizes[i], tag++);
    }
    /* Aligned objects live at once must not overlap either. */
    for (size_t alignment = 16; alignment <= (size_t)1 << 22; alignment *= 4) {
        char *held[16];
        for (int i = 0; i < 16; i++) {
            held[i] = memalign(alignment, 200);
            CHECK(held[i] && (uintptr_t)held[i] % alignment == 0);
            memset(held[i], i, 200);
        }
        for (int i = 0; i < 16; i++) {
            for (int k = 0; k < 200; k++) CHECK(held[i][k] == i);
            free(held[i]);
        }
    }
    /* Every plain request is fit for max_align_t. */
    for (size_t size = 0; size < 5000; size++) {
        void *p = malloc(size);
        if (!p || (uintptr_t)p % 16) FAIL("malloc(%zu) = %p", size, p);
        free(p);
    }
    return 0;
}
