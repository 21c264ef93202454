/* A program in a control group of 128 MiB holds 80 MiB again and again, each time as blocks of another size: what
 * it gave back by drains and malloc_trim is there for the next, and nobody is killed. argv: - */
#include "guest.h"

enum { LIVE = 80 << 20, GROUP_KIB = 128 << 10 };
static const size_t sizes[] = {64, 3 << 20, 1000, 40000, 16384, 300000, 20 << 20, 256};
static char *held[LIVE / 64];

static void hold(size_t size) {
    size_t count = LIVE / size;
    for (size_t i = 0; i < count; i++) {
        CHECK((held[i] = malloc(size)));
        memset(held[i], (int)i, size);
    }
    for (size_t i = 0; i < count; i++) {
        CHECK(edges_hold(held[i], size, (unsigned char)i));
        free(held[i]);
    }
}

int main(int argc, char **argv) {
    if (!is_begun_anew(argc)) {
        enter_group("memory", "memory.max", "134217728");
        begin_anew(argv);
    }
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hold(sizes[i]);
        CHECK(drain_everything() == 0);
        malloc_trim(0);
        long left = resident_kib();
        if (left > GROUP_KIB / 4) FAIL("after blocks of %zu bytes %ld KiB stay", sizes[i], left);
    }
    return 0;
}
