/* On four invented nodes: blocks are handed out on a node by its number, told, moved with their contents and
 * alignment, and freed and grown as all others. */
#include "check.h"
#include "homenode.h"

__typeof__(hn_alloc_onnode) *alloc_onnode;
__typeof__(hn_node_of) *node_of;
__typeof__(hn_migrate) *migrate;
__typeof__(hn_pages_of) *pages_of;

enum { NODES = 4 };
static const size_t sizes[] = {0, 1, 24, 64, 1000, 4096, 33000, 1 << 20, (1 << 20) + 1, 5 << 20};

static void fill(unsigned char *block, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++) block[i] = (unsigned char)(seed + i * 31 + (i >> 8));
}

static void holds(const unsigned char *block, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++)
        if (block[i] != (unsigned char)(seed + i * 31 + (i >> 8))) FAIL("byte %zu of %zu changed", i, size);
}

static void refused(void *result, int error) {
    CHECK(!result);
    CHECK(errno == error);
    errno = 0;
}

static void each_size(size_t size) {
    for (int node = 0; node < NODES; node++) {
        errno = 7;
        unsigned char *block = alloc_onnode(size, node);
        CHECK(block && errno == 7);
        CHECK(node_of(block) == node && (uintptr_t)block % 16 == 0);
        CHECK(malloc_usable_size(block) >= size);
        fill(block, size, (unsigned)node);
        for (int step = 1; step <= NODES; step++) {
            int to = (node + step) % NODES;
            block = migrate(block, to);
            CHECK(block && node_of(block) == to);
            holds(block, size, (unsigned)node);
        }
        CHECK(migrate(block, node) == (void *)block);
        CHECK((block = realloc(block, size + 100)));
        holds(block, size, (unsigned)node);
        free(block);
    }
}

int main(void) {
    alloc_onnode = dlsym(RTLD_DEFAULT, "hn_alloc_onnode");
    node_of = dlsym(RTLD_DEFAULT, "hn_node_of");
    migrate = dlsym(RTLD_DEFAULT, "hn_migrate");
    pages_of = dlsym(RTLD_DEFAULT, "hn_pages_of");
    CHECK(alloc_onnode && node_of && migrate && pages_of);
    for (int round = 0; round < 20; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) each_size(sizes[i]);
    for (size_t align = 16; align <= (size_t)64 << 20; align *= 4) {
        void *block = aligned_alloc(align, 100);
        CHECK(block && (block = migrate(block, 3)));
        CHECK((uintptr_t)block % align == 0 && node_of(block) == 3);
        free(block);
    }
    int local = 0;
    errno = 0;
    refused(alloc_onnode(64, NODES), EINVAL);
    refused(alloc_onnode(64, -1), EINVAL);
    refused(alloc_onnode((size_t)-1, 0), ENOMEM);
    refused(migrate(NULL, 0), EFAULT);
    refused(migrate(&local, 0), EFAULT);
    void *stays = malloc(64);
    refused(migrate(stays, 99), EINVAL);
    free(stays);
    CHECK(node_of(&local) == -1 && errno == EFAULT);
    errno = 0;
    CHECK(pages_of(&local, 1, NULL) == -1 && errno == EINVAL);
    /* Where pages truly are: this machine's nodes, and nothing for what was never touched. */
    char *fresh = malloc(64 << 20);
    fresh[0] = 1;
    int nodes[33];
    if (pages_of(fresh, 33, nodes)) {
        CHECK(errno == EPERM || errno == ENOSYS);
    } else {
        CHECK(nodes[0] >= 0 && nodes[32] >= -EFAULT);
    }
    free(fresh);
    return 0;
}
