/* Runs with interposer.so preloaded before or after the allocator: starts, allocates in threads,
 * trims, ends. Case P3. */
#include "check.h"
#include <fcntl.h>
#include <sys/mman.h>

int main(void) {
    CHECK(getenv("PATH") != NULL);
    int fd = open("/dev/zero", O_RDONLY);
    CHECK(fd >= 0);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED && munmap(map, 4096) == 0);
    close(fd);
    pthread_t threads[4];
    start_churn(threads, 4);
    for (int i = 0; i < 50; i++) {
        CHECK(allocate_each_kind() == 0);
        malloc_trim(0);
        pause_us(2000);
    }
    stop_churn(threads, 4);
    return 0;
}
