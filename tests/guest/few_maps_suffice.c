/* Under a small vm.max_map_count: large blocks that grow, so that their pages move, half of them freed in a
 * checkerboard, work or give NULL, and the number of maps stays bounded. argv: the limit. */
#include "guest.h"

enum { BLOCKS = 400, MIB = 1 << 20 };
static char *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static int count_maps(void) {
    static char text[1 << 16];
    int fd = open("/proc/self/maps", O_RDONLY), lines = 0;
    CHECK(fd >= 0);
    for (ssize_t got; (got = read(fd, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < got; i++) lines += text[i] == '\n';
    close(fd);
    return lines;
}

int main(int argc, char **argv) {
    if (!is_begun_anew(argc)) {
        write_line("/proc/sys/vm/max_map_count", argv[1]);
        begin_anew(argv);
    }
    int limit = atoi(argv[1]), refused = 0;
    int at_start = count_maps();
    uint32_t x = 1;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            sizes[i] = (2 + next_random(&x) % 3) * MIB + i;
            if (!(blocks[i] = malloc(sizes[i]))) refused++, sizes[i] = 0;
            mark_edges(blocks[i], sizes[i], (unsigned char)i);
        }
        for (int i = 0; i < BLOCKS; i += 2) free(blocks[i]), blocks[i] = NULL, sizes[i] = 0;
        for (int i = 1; i < BLOCKS; i += 2) {
            if (!blocks[i]) continue;
            CHECK(edges_hold(blocks[i], sizes[i], (unsigned char)i));
            size_t more = sizes[i] * 5;
            char *grown = realloc(blocks[i], more);
            if (!grown) refused++;
            else {
                CHECK(edges_hold(grown, sizes[i], (unsigned char)i));
                blocks[i] = grown, sizes[i] = more;
                mark_edges(grown, more, (unsigned char)i);
            }
        }
        int maps = count_maps();
        if (maps - at_start > limit / 2) FAIL("%d maps, of %d, %d at start", maps, limit, at_start);
        for (int i = 0; i < BLOCKS; i++) {
            CHECK(edges_hold(blocks[i], sizes[i], (unsigned char)i));
            free(blocks[i]);
        }
        CHECK(allocate_each_kind() == 0);
    }
    malloc_trim(0);
    if (refused > BLOCKS / 4) FAIL("%d requests refused", refused);
    return 0;
}
