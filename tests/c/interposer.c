/* Preloaded beside the allocator: its mmap, open and getenv allocate, as leak checkers' and
 * tracers' do. An allocator that starts up through the public names recurses or hangs. Case P3. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static void allocate(void) {
    for (size_t size = 8; size < 300000; size *= 6) {
        char *p = malloc(size);
        if (p) p[size - 1] = 1;
        free(p);
    }
}
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    allocate();
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return mmap(at, length, protection, flags, fd, offset);
}
int munmap(void *at, size_t length) {
    allocate();
    return (int)syscall(SYS_munmap, at, length);
}
int mprotect(void *at, size_t length, int protection) {
    allocate();
    return (int)syscall(SYS_mprotect, at, length, protection);
}
int madvise(void *at, size_t length, int advice) {
    allocate();
    return (int)syscall(SYS_madvise, at, length, advice);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    allocate();
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
char *getenv(const char *name) {
    allocate();
    size_t length = strlen(name);
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, name, length) && (*e)[length] == '=') return *e + length + 1;
    return NULL;
}
char *secure_getenv(const char *name) { return getenv(name); }
