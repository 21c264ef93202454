/* An allocation made before any constructor ran lives on and is freed normally. */
#include "check.h"

static char *early[6];
static const size_t sizes[6] = {1, 100, 5000, 100000, 1 << 20, 6 << 20};

static void first(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    for (int i = 0; i < 6; i++)
        if ((early[i] = malloc(sizes[i]))) mark_edges(early[i], sizes[i], (unsigned char)(i + 1));
}
__attribute__((section(".preinit_array"), used)) static void (*run_first)(int, char **, char **) = first;

int main(void) {
    for (int i = 0; i < 6; i++) {
        CHECK(early[i] && edges_hold(early[i], sizes[i], (unsigned char)(i + 1)));
        free(early[i]);
    }
    CHECK(allocate_each_kind() == 0);
    return 0;
}
