/* Alignments 2^3 to 2^30, sizes at their edges, realloc up and down: aligned, contents kept.
 * Only the edges are touched, so that GiB requests cost no memory. */
#include "rules.h"
#include <stddef.h>

static void resize(char **p, size_t *size, size_t wanted, unsigned char tag) {
    size_t kept = *size < wanted ? *size : wanted;
    if (kept) (*p)[kept - 1] = (char)tag;
    char *moved = realloc(*p, wanted);
    if (!moved) FAIL("realloc from %zu to %zu is NULL", *size, wanted);
    rules_at = wanted;
    RULE("realloc keeps contents", edges_hold(moved, kept, tag));
    RULE("realloc gives at least its size", malloc_usable_size(moved) >= wanted);
    *p = moved, *size = wanted;
    mark_edges(moved, wanted, tag);
}

static void one(size_t alignment, size_t size, unsigned char tag) {
    void *got = NULL;
    int failed = posix_memalign(&got, alignment, size);
    if (failed) FAIL("posix_memalign(%zu, %zu) = %d", alignment, size, failed);
    rules_at = alignment;
    RULE("posix_memalign aligns", on(got, alignment));
    RULE("posix_memalign gives at least its size", malloc_usable_size(got) >= size);
    mark_edges(got, size, tag);
    char *p = got;
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
            CHECK(held[i]);
            rules_at = alignment;
            RULE("memalign aligns", on(held[i], alignment));
            memset(held[i], i, 200);
        }
        for (int i = 0; i < 16; i++) {
            for (int k = 0; k < 200; k++) RULE("aligned blocks are apart", held[i][k] == i);
            free(held[i]);
        }
    }
    /* Every plain request is fit for max_align_t. */
    for (size_t size = 0; size < 5000; size++) {
        void *blocks[] = {malloc(size), calloc(1, size), realloc(NULL, size), realloc(malloc(7), size + 1)};
        rules_at = size;
        for (int i = 0; i < 4; i++) {
            RULE("every block is fit for max_align_t", on(blocks[i], _Alignof(max_align_t)));
            free(blocks[i]);
        }
    }
    return rules_end();
}
