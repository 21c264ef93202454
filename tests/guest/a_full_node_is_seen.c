/* A node is filled under bind: then there is no memory, and nothing is on another node; and under preferred: then
 * the next nearest serves.  Nobody is killed, and what was freed can be had again.  Case N1.  Argument: blocks'
 * bytes. */
#include "guest.h"
#include "homenode.h"

static size_t size;

struct link {
    struct link *next;
};

/* Takes blocks until there are none, or `most` bytes are out; touches all. */
static struct link *fill(size_t most, size_t *bytes) {
    struct link *last = NULL;
    for (*bytes = 0; *bytes < most; *bytes += size) {
        struct link *block = malloc(size);
        if (!block) {
            CHECK(errno == ENOMEM);
            break;
        }
        memset(block, 1, size);
        block->next = last;
        last = block;
    }
    return last;
}

static void free_list(struct link *last) {
    while (last) {
        struct link *next = last->next;
        free(last);
        last = next;
    }
}

static long on_node(struct link *last, int node, long *all) {
    enum { SOME = 512 };
    long found = 0;
    void *objects[SOME];
    int count = 0;
    *all = 0;
    for (; last; last = last->next) {
        objects[count++] = last;
        if (count == SOME || !last->next) {
            found += count_on_node(objects, count, node);
            *all += count;
            count = 0;
        }
    }
    return found;
}

static size_t memory_of(int node) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    const char *line = line_of(path);
    return strtoul(strstr(line, "MemTotal:") + 9, NULL, 10) << 10;
}

int main(int argc, char **argv) {
    __typeof__(hn_set_policy) *set_policy = dlsym(RTLD_DEFAULT, "hn_set_policy");
    CHECK(set_policy && argc > 1);
    size = strtoul(argv[1], NULL, 10);
    size_t node_bytes = memory_of(1), bytes, again;
    long all, there;
    move_to_node(0);
    CHECK(!set_policy("bind:1", NULL));
    struct link *bound = fill(4 * node_bytes, &bytes);
    if (bytes > node_bytes || bytes < node_bytes / 2) FAIL("%zu bytes are bound to a node of %zu", bytes, node_bytes);
    there = on_node(bound, 1, &all);
    if (there != all) FAIL("%ld of %ld blocks are on node 1", there, all);
    free_list(bound);
    bound = fill(4 * node_bytes, &again);
    if (again < bytes / 10 * 9) FAIL("%zu bytes, and then only %zu", bytes, again);
    free_list(bound);
    malloc_trim(0);
    CHECK(!set_policy("preferred:1", NULL));
    bound = fill(node_bytes / 4 * 5, &bytes);
    if (bytes < node_bytes / 4 * 5) FAIL("only %zu bytes of a node of %zu and the next", bytes, node_bytes);
    there = on_node(bound, 1, &all);
    long next = on_node(bound, 0, &all);
    if (there < all / 2 || there + next < all / 100 * 99) FAIL("%ld blocks on node 1, %ld on node 0 of %ld", there, next, all);
    free_list(bound);
    return 0;
}
