/* malloc_usable_size covers the request, does not change, and every byte of it is the caller's. */
#include "rules.h"

enum { AT_ONCE = 3 };

static void probe(size_t size) {
    unsigned char *held[AT_ONCE];
    size_t usable[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        held[i] = unfortified(malloc(size));
        CHECK(held[i]);
        rules_at = size;
        usable[i] = malloc_usable_size(held[i]);
        RULE("the usable size covers the request", usable[i] >= size);
        memset(held[i], i + 1, usable[i]);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        RULE("the usable size is stable", malloc_usable_size(held[i]) == usable[i]);
        for (size_t k = 0; k < usable[i]; k += k + 64 < usable[i] ? 61 : 1)
            RULE("the usable part is the block's alone", held[i][k] == i + 1);
        /* Growing into the usable part keeps the contents. */
        unsigned char *same = realloc(held[i], usable[i] ? usable[i] : 1);
        RULE("growing into the usable part keeps contents",
             same && edges_hold(same, usable[i], (unsigned char)(i + 1)));
        free(same);
    }
}

/* A length that a copy is checked against; the compiler sees the request's at most. */
static void fortified(size_t size) {
    char text[] = "checked against the length of the block that it goes to";
    char *p = malloc(size);
    CHECK(p);
    memset(p, 'x', size);
    snprintf(p, size, "%s", text);
    memcpy(p, text, size < sizeof text ? size : sizeof text);
    memmove(p + size / 2, p, size - size / 2);
    RULE("checked copies up to the request pass", p[0] == text[0] && p[size / 2] == text[0]);
    CHECK((p = realloc(p, size * 2)));
    memset(p, 'y', size * 2);
    RULE("checked copies up to a grown request pass", p[size * 2 - 1] == 'y');
    free(p);
}

int main(void) {
    RULE("malloc_usable_size(NULL) is 0", malloc_usable_size(NULL) == 0);
    for (size_t size = 1; size < 3000000; size = size * 2 + 1) fortified(size);
    for (size_t size = 0; size < 2100; size++) probe(size);
    for (size_t size = 2100; size < 300000; size += 1 + size / 40) probe(size);
    for (size_t power = 1024; power <= (size_t)8 << 20; power *= 2)
        for (int off = -1; off <= 1; off++) probe(power + (size_t)off);
    return rules_end();
}
