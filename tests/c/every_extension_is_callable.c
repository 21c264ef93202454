/* The rest of malloc.h and C23's sized frees exist, answer sanely and take what they should. */
#include "check.h"

int main(void) {
    size_t (*memalignment)(const void *) = (size_t (*)(const void *))dlsym(RTLD_DEFAULT, "memalignment");
    CHECK(memalignment || !homenode_required());
    if (memalignment) {
        CHECK(memalignment(NULL) == 0 && memalignment((void *)48) == 16 && memalignment((void *)1) == 1);
        void *block = memalign(1 << 16, 10);
        CHECK(memalignment(block) >= 1 << 16);
        free(block);
    }
    CHECK(malloc_usable_size(NULL) == 0);
    void *p = malloc(1000);
    CHECK(p && malloc_usable_size(p) >= 1000);

    int trimmed = malloc_trim(0);
    CHECK(trimmed == 0 || trimmed == 1);
    struct mallinfo2 wide = mallinfo2();
    CHECK(wide.uordblks <= wide.arena);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
    (void)narrow;

    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CHECK(out && malloc_info(0, out) == 0);
    fclose(out);
    CHECK(text && strstr(text, "<malloc"));
    free(text);
    errno = 0;
    CHECK(malloc_info(1, stderr) == EINVAL && errno == 0);
    malloc_stats();
    free(p);

    void (*cfree_)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
    void (*free_sized_)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*free_aligned_sized_)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    CHECK(!homenode_required() || (cfree_ && free_sized_ && free_aligned_sized_));
    for (size_t n = 0; n < (size_t)8 << 20; n = n * 2 + 1) {
        if (cfree_) cfree_(malloc(n)), cfree_(NULL);
        if (free_sized_) free_sized_(malloc(n), n), free_sized_(calloc(1, n), n), free_sized_(NULL, n);
        if (free_sized_) free_sized_(realloc(malloc(7), n ? n : 1), n ? n : 1);
        for (size_t a = 16; free_aligned_sized_ && a <= 1 << 16; a *= 8)
            free_aligned_sized_(aligned_alloc(a, n), a, n), free_aligned_sized_(NULL, a, n);
    }
    return 0;
}
