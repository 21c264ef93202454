/* Blocks of every entry, libc's own among them, may be given to each call that takes one. */
#include "rules.h"
#include <limits.h>
#include <wchar.h>

static void *posix(size_t n) {
    void *p = NULL;
    CHECK(posix_memalign(&p, 64, n) == 0);
    return p;
}
static void *plain(size_t n) { return malloc(n); }
static void *zeroed(size_t n) { return calloc(n, 1); }
static void *fresh(size_t n) { return realloc(NULL, n); }
static void *fresh_array(size_t n) { return reallocarray(NULL, 1, n); }
static void *grown(size_t n) { return realloc(malloc(n / 4 + 1), n); }
static void *shrunk(size_t n) { return realloc(malloc(n * 4), n); }
static void *iso(size_t n) { return aligned_alloc(256, n); }
static void *old(size_t n) { return memalign(1 << 14, n); }
static void *paged(size_t n) { return valloc(n); }
#ifdef __GLIBC__
static void *pages(size_t n) { return pvalloc(n); }
#endif
/* At least n bytes of libc's making. */
static void *copied(size_t n) {
    char *text = malloc(n + 1);
    CHECK(text);
    memset(text, 'x', n), text[n] = 0;
    char *copy = strdup(text);
    free(text);
    return copy;
}
static void *printed(size_t n) {
    char *text = NULL;
    CHECK(asprintf(&text, "%*d", (int)n, 7) == (int)n);
    return text;
}
static void *streamed(size_t n) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CHECK(out);
    for (size_t i = 0; i < n; i++) fputc('x', out);
    fclose(out);
    return text;
}
static void *wide(size_t n) {
    wchar_t *text = malloc((n + 1) * sizeof(wchar_t));
    CHECK(text && wmemset(text, L'x', n));
    text[n] = 0;
    wchar_t *copy = wcsdup(text);
    free(text);
    return copy;
}

static void *(*const makers[])(size_t) = {
    plain, zeroed, fresh, fresh_array, grown, shrunk, iso, old, paged, posix, copied, printed, streamed, wide,
#ifdef __GLIBC__
    pages,
#endif
};
enum { MAKERS = sizeof makers / sizeof *makers };

static void (*old_free)(void *);
static void (*sized)(void *, size_t);
static void (*aligned_sized)(void *, size_t, size_t);

static void to_free(void *p, size_t n) { free(p); }
static void to_nothing(void *p, size_t n) { RULE("realloc(p, 0) takes it", !realloc(p, n - n)); }
static void to_no_array(void *p, size_t n) { RULE("reallocarray(p, 0, 8) takes it", !reallocarray(p, n - n, 8)); }
static void resized(void *p, size_t n, size_t to) {
    unsigned char *q = realloc(p, to);
    RULE("realloc takes it", q && edges_hold(q, n < to ? n : 1, 'x'));
    free(q);
}
static void to_longer(void *p, size_t n) { resized(p, n, n * 2 + 100); }
static void to_shorter(void *p, size_t n) { resized(p, n, n / 2 + 1); }
static void to_array(void *p, size_t n) {
    unsigned char *q = reallocarray(p, 3, n);
    RULE("reallocarray takes it", q && edges_hold(q, n, 'x'));
    free(q);
}
static void to_cfree(void *p, size_t n) { old_free ? old_free(p) : free(p); }
/* Legal for malloc, calloc and realloc with the size asked for; ours take any that is not longer. */
static void to_sized(void *p, size_t n) { sized ? sized(p, n) : free(p); }

static void (*const takers[])(void *, size_t) = {to_free,   to_nothing, to_no_array, to_longer, to_shorter,
                                                 to_array, to_cfree,   to_sized};
enum { TAKERS = sizeof takers / sizeof *takers };

static void each_pair(size_t n) {
    for (int m = 0; m < MAKERS; m++) {
        for (int t = 0; t < TAKERS; t++) {
            rules_at = n;
            unsigned char *p = unfortified(makers[m](n));
            RULE("an entry gives a block", p != NULL);
            RULE("it is at least as long as asked for", malloc_usable_size(p) >= n);
            mark_edges(p, n, 'x');
            takers[t](p, n);
        }
    }
    if (aligned_sized)
        for (size_t a = 16; a <= 1 << 21; a *= 4) aligned_sized(aligned_alloc(a, n), a, n);
}

static void libcs_own(void) {
    char *line = NULL, *real = realpath("/", NULL), *folder = getcwd(NULL, 0);
    size_t length = 0;
    RULE("realpath gives a block", real && malloc_usable_size(real) >= 2);
    RULE("getcwd gives a block", folder && malloc_usable_size(folder) > strlen(folder));
    free(real), free(folder);
    FILE *text = fopen("/proc/self/status", "r");
    CHECK(text);
    while (getline(&line, &length, text) > 0) RULE("getline's length is its block's", malloc_usable_size(line) >= length);
    fclose(text);
    free(line);
    /* A block that the program gives to libc to grow. */
    line = malloc(length = 1);
    CHECK((text = fopen("/proc/self/status", "r")));
    while (getline(&line, &length, text) > 0) continue;
    fclose(text);
    RULE("getline grows a block of malloc", line && length > 1);
    free(line);
}

int main(void) {
    *(void **)&old_free = dlsym(RTLD_DEFAULT, "cfree");
    *(void **)&sized = dlsym(RTLD_DEFAULT, "free_sized");
    *(void **)&aligned_sized = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    RULE("C23's frees are there", !homenode_required() || (sized && aligned_sized));
    for (size_t n = 1; n < (size_t)6 << 20; n = n * 3 + 1) each_pair(n);
    libcs_own();
    return rules_end();
}
