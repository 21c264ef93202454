/* On four invented nodes: what is handed out is of the nodes that the policy names, whoever allocates, and of the
 * CPU's own again when the policy is local again. */
#include "check.h"
#include "homenode.h"

__typeof__(hn_set_policy) *set_policy;
__typeof__(hn_node_of) *node_of;

enum { NODES = 4, OBJECTS = 20000 };
static const size_t sizes[] = {24, 600, 5000, 40000};
static size_t bytes[NODES];

static void on_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK(!sched_setaffinity(0, sizeof set, &set));
}

static void choose(const char *policy) {
    if (set_policy(policy, NULL)) FAIL("%s: errno %d", policy, errno);
}

static int home(const void *p) {
    int node = node_of(p);
    CHECK(node >= 0 && node < NODES);
    return node;
}

/* Allocates `total` bytes of each size, counts where they are, and frees them. */
static void fill(size_t total) {
    static void *held[OBJECTS];
    memset(bytes, 0, sizeof bytes);
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t count = total / sizes[s];
        if (count > OBJECTS) count = OBJECTS;
        for (size_t i = 0; i < count; i++) {
            CHECK((held[i] = malloc(sizes[s])));
            mark_edges(held[i], sizes[s], (unsigned char)i);
            bytes[home(held[i])] += sizes[s];
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(edges_hold(held[i], sizes[s], (unsigned char)i));
            free(held[i]);
        }
    }
}

static void shares(const char *policy, const double *wanted) {
    size_t all = 0;
    for (int i = 0; i < NODES; i++) all += bytes[i];
    for (int i = 0; i < NODES; i++) {
        double share = (double)bytes[i] / (double)all;
        if (share < wanted[i] - 0.02 || share > wanted[i] + 0.02)
            FAIL("%s: node %d has %.3f of the bytes, not %.3f", policy, i, share, wanted[i]);
    }
}

static void large(const char *policy, const int *wanted) {
    enum { BLOCKS = 32 };
    void *held[BLOCKS];
    int counts[NODES] = {0};
    for (int i = 0; i < BLOCKS; i++) {
        CHECK((held[i] = malloc(2 << 20)));
        counts[home(held[i])]++;
    }
    for (int i = 0; i < BLOCKS; i++) free(held[i]);
    for (int i = 0; i < NODES; i++)
        if (abs(counts[i] - wanted[i]) > (wanted[i] == 0 || wanted[i] == BLOCKS ? 0 : 1))
            FAIL("%s: node %d has %d large blocks, not %d", policy, i, counts[i], wanted[i]);
}

int main(void) {
    set_policy = dlsym(RTLD_DEFAULT, "hn_set_policy");
    node_of = dlsym(RTLD_DEFAULT, "hn_node_of");
    CHECK(set_policy && node_of);
    for (int cpu = 0; cpu < 2; cpu++) {
        static const struct {
            const char *policy;
            double shares[2][NODES];
            int large[2][NODES];
        } rows[] = {
            {"local", {{1, 0, 0, 0}, {0, 1, 0, 0}}, {{32, 0, 0, 0}, {0, 32, 0, 0}}},
            {"bind:2", {{0, 0, 1, 0}, {0, 0, 1, 0}}, {{0, 0, 32, 0}, {0, 0, 32, 0}}},
            {"bind:0,3", {{1, 0, 0, 0}, {0, 0, 0, 1}}, {{32, 0, 0, 0}, {0, 0, 0, 32}}},
            {"preferred:1", {{0, 1, 0, 0}, {0, 1, 0, 0}}, {{0, 32, 0, 0}, {0, 32, 0, 0}}},
            {"interleave:0-3", {{.25, .25, .25, .25}, {.25, .25, .25, .25}}, {{8, 8, 8, 8}, {8, 8, 8, 8}}},
            {"weighted:0*3,2", {{.75, 0, .25, 0}, {.75, 0, .25, 0}}, {{24, 0, 8, 0}, {24, 0, 8, 0}}},
            {"local", {{1, 0, 0, 0}, {0, 1, 0, 0}}, {{32, 0, 0, 0}, {0, 32, 0, 0}}},
        };
        on_cpu(cpu);
        for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
            choose(rows[i].policy);
            /* What CPUs cached under another policy has gone home. */
            fill(16 << 20);
            shares(rows[i].policy, rows[i].shares[cpu]);
            large(rows[i].policy, rows[i].large[cpu]);
        }
        fill(1 << 20);
        shares("local again", rows[0].shares[cpu]);
    }
    return 0;
}
