/* Each policy of the process against the kernel's word on every page: small objects and large blocks, on a machine
 * of three nodes of which the last has no CPU.  What CPUs cache is spread, too, so what is handed out is not quite. */
#include "guest.h"
#include "homenode.h"

enum { NODES = 3, SMALL = 16000, LARGE = 24 << 20, COMPOUND_PAGES = 512 };
__typeof__(hn_set_policy) *set_policy;
__typeof__(hn_pages_of) *pages_of;
__typeof__(hn_node_of) *node_of;
__typeof__(hn_alloc_onnode) *alloc_onnode;
__typeof__(hn_migrate) *migrate;
__typeof__(hn_drain_all) *drain_all;
static long counts[NODES];

static void count_pages(const void *start, size_t bytes) {
    static int nodes[LARGE / 4096 + 1];
    size_t pages = (bytes + 4095) / 4096;
    CHECK(!pages_of(start, pages, nodes));
    for (size_t i = 0; i < pages; i++) {
        CHECK(nodes[i] >= 0 && nodes[i] < NODES);
        counts[nodes[i]]++;
    }
}

static void take_small(void) {
    static void *held[SMALL];
    memset(counts, 0, sizeof counts);
    allocate_mixed(held, SMALL, 3);
    for (int i = 0; i < SMALL; i++) {
        int node;
        CHECK(!pages_of(held[i], 1, &node) && node >= 0 && node < NODES);
        counts[node] += (long)malloc_usable_size(held[i]);
    }
    free_all(held, SMALL);
}

static void take_large(void) {
    memset(counts, 0, sizeof counts);
    char *block = malloc(LARGE);
    CHECK(block);
    memset(block, 1, LARGE);
    count_pages(block, LARGE);
    CHECK((block = realloc(block, LARGE / 2)));
    free(block);
}

static void near(const char *policy, const char *what, const double *shares, long within) {
    long all = counts[0] + counts[1] + counts[2];
    for (int i = 0; i < NODES; i++) {
        double wanted = shares[i] * (double)all;
        double off = (double)counts[i] - wanted;
        if (off > (double)within || off < -(double)within || (wanted == 0 && counts[i]))
            FAIL("%s, %s: %ld of %ld are on node %d, not %.0f", policy, what, counts[i], all, i, wanted);
    }
}

static void on_each_node(void) {
    for (int node = 0; node < NODES; node++) {
        for (size_t size = 16; size <= 8 << 20; size *= 8) {
            char *block = alloc_onnode(size, node);
            CHECK(block && node_of(block) == node);
            memset(block, 2, size);
            memset(counts, 0, sizeof counts);
            count_pages(block, size);
            CHECK(counts[node] == (long)((size + 4095) / 4096));
            int next = (node + 1) % NODES;
            CHECK((block = migrate(block, next)) && node_of(block) == next && block[size - 1] == 2);
            memset(counts, 0, sizeof counts);
            count_pages(block, size);
            CHECK(counts[next] == (long)((size + 4095) / 4096));
            free(block);
        }
    }
}

int main(void) {
    static const struct {
        const char *policy;
        double shares[2][NODES]; /* for a thread on node 0, on node 1 */
    } rows[] = {
        {"local", {{1, 0, 0}, {0, 1, 0}}},
        {"bind:1", {{0, 1, 0}, {0, 1, 0}}},
        {"bind:1-2", {{0, 1, 0}, {0, 1, 0}}},
        {"preferred:2", {{0, 0, 1}, {0, 0, 1}}},
        {"interleave:0-2", {{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}}},
        {"weighted:0*3,2*1", {{.75, 0, .25}, {.75, 0, .25}}},
        {"local", {{1, 0, 0}, {0, 1, 0}}},
    };
    set_policy = dlsym(RTLD_DEFAULT, "hn_set_policy");
    pages_of = dlsym(RTLD_DEFAULT, "hn_pages_of");
    node_of = dlsym(RTLD_DEFAULT, "hn_node_of");
    alloc_onnode = dlsym(RTLD_DEFAULT, "hn_alloc_onnode");
    migrate = dlsym(RTLD_DEFAULT, "hn_migrate");
    drain_all = dlsym(RTLD_DEFAULT, "hn_drain_all");
    CHECK(set_policy && pages_of && node_of && alloc_onnode && migrate && drain_all);
    for (int node = 0; node < 2; node++) {
        move_to_node(node);
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
            CHECK(!set_policy(rows[i].policy, NULL));
            drain_all(HN_DRAIN_AUTO, NULL);
            take_small();
            near(rows[i].policy, "bytes of small objects", rows[i].shares[node], 400000);
            drain_all(HN_DRAIN_AUTO, NULL);
            for (int round = 0; round < 2; round++) {
                take_large();
                near(rows[i].policy, "pages of a large block", rows[i].shares[node], COMPOUND_PAGES);
            }
        }
        on_each_node();
    }
    return 0;
}
