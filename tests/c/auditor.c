/* An LD_AUDIT library that allocates in every callback: it lives in a namespace of its own and runs
 * before the program's libraries are relocated. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void allocate(void) {
    for (size_t size = 1; size < 200000; size = size * 3 + 1) {
        char *p = malloc(size);
        if (!p) abort();
        memset(p, 1, size);
        free(p);
    }
}
unsigned la_version(unsigned version) {
    allocate();
    return version;
}
unsigned la_objopen(struct link_map *map, Lmid_t namespace_id, uintptr_t *cookie) {
    (void)map, (void)namespace_id, (void)cookie;
    allocate();
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                       unsigned *flags, const char *name) {
    (void)index, (void)from, (void)to, (void)flags, (void)name;
    allocate();
    return symbol->st_value;
}
