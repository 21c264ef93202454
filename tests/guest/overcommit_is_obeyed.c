/* vm.overcommit_memory 0, 1 and 2: threads and forks work. Under 2 with little to give, malloc answers NULL with
 * ENOMEM when that is used up, for blocks and for objects; what was had is whole, and once it is freed, can be had
 * again. argv: the mode. */
#include "guest.h"

enum { MIB = 1 << 20, BLOCKS = 2048, LIMIT_MIB = 512, OBJECTS = 1 << 18 };
static char *blocks[BLOCKS], *objects[OBJECTS];

static long mib_had_until_null(void) {
    int count = 0, few = 0;
    for (; count < BLOCKS; count++) {
        errno = 0;
        if (!(blocks[count] = malloc(MIB))) break;
        mark_edges(blocks[count], MIB, (unsigned char)count);
    }
    CHECK(count < BLOCKS && errno == ENOMEM);
    for (; few < OBJECTS; few++) {
        errno = 0;
        if (!(objects[few] = malloc(1000))) break;
        mark_edges(objects[few], 1000, (unsigned char)few);
    }
    CHECK(few < OBJECTS && errno == ENOMEM);
    CHECK(!malloc(16 * MIB) && !calloc(16, MIB) && errno == ENOMEM);
    for (int i = 0; i < few; i++) {
        CHECK(edges_hold(objects[i], 1000, (unsigned char)i));
        free(objects[i]);
    }
    for (int i = 0; i < count; i++) {
        CHECK(edges_hold(blocks[i], MIB, (unsigned char)i));
        free(blocks[i]);
    }
    return count + few / 1024;
}

int main(int argc, char **argv) {
    if (!is_begun_anew(argc)) {
        if (*argv[1] == '2') write_line("/proc/sys/vm/overcommit_kbytes", "524288");
        write_line("/proc/sys/vm/overcommit_memory", argv[1]);
        begin_anew(argv);
    }
    pthread_t threads[4];
    start_churn(threads, 4);
    pid_t child = fork();
    if (child == 0) _exit(allocate_each_kind());
    CHECK(child > 0 && reap(child, 60) == 0);
    stop_churn(threads, 4);
    CHECK(allocate_each_kind() == 0);
    if (*argv[1] == '2') {
        long first = mib_had_until_null();
        if (first > LIMIT_MIB || first < LIMIT_MIB / 2) FAIL("%ld MiB of %d", first, LIMIT_MIB);
        CHECK(allocate_each_kind() == 0);
        long second = mib_had_until_null();
        if (second < first - first / 8) FAIL("%ld MiB, then %ld", first, second);
        CHECK(drain_everything() == 0);
        malloc_trim(0);
        CHECK(allocate_each_kind() == 0);
    } else {
        /* More than the machine has, little of it touched. */
        char *sparse = malloc((size_t)8 << 30);
        CHECK(sparse || *argv[1] == '0');
        if (sparse) mark_edges(sparse, (size_t)8 << 30, 7);
        free(sparse);
    }
    return 0;
}
