/* Every name of malloc's family, first and second, comes from the archive: had libc's malloc to supply one,
 * the others would be defined twice and the program would not link. */
#define CHECK_STATIC
#include "check.h"

#define EACH_NAME(X)                                                                               \
    X(aligned_alloc) X(calloc) X(cfree) X(free) X(free_aligned_sized) X(free_sized) X(malloc)      \
    X(malloc_usable_size) X(memalign) X(posix_memalign) X(pvalloc) X(realloc) X(reallocarray)      \
    X(valloc) X(mallinfo) X(mallinfo2) X(malloc_info) X(malloc_stats) X(malloc_trim) X(mallopt)    \
    X(__libc_calloc) X(__libc_free) X(__libc_mallinfo) X(__libc_malloc) X(__libc_mallopt)          \
    X(__libc_memalign) X(__libc_pvalloc) X(__libc_realloc) X(__libc_reallocarray)                  \
    X(__libc_valloc) X(__posix_memalign)

#define ADDRESS(name) extern char address_of_##name[] __asm__(#name);
EACH_NAME(ADDRESS)
#define ENTRY(name) address_of_##name,
static const void *const volatile names[] = {EACH_NAME(ENTRY)};

int main(void) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) CHECK(names[i]);
    return allocate_each_kind();
}
