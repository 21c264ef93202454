/* Where the system refuses maps longer than 2^argv[1] bytes, as one of 39 bits of address space does, the
 * heap takes smaller slices: each kind of object is to be had, for threads of other nodes too. */
#include "seccomp.h"
#include <sys/mman.h>

static void refuse_long_maps(unsigned shift) {
    enum { HIGH = offsetof(struct seccomp_data, args[1]) + 4 };
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, HIGH),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1u << (shift - 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("no seccomp filters here");
}

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    if (argc < 3) {
        refuse_long_maps((unsigned)atoi(argv[1]));
        execl("/proc/self/exe", argv[0], argv[1], "inside", (char *)NULL);
        FAIL("no exec");
    }
    size_t refused = (size_t)1 << atoi(argv[1]);
    CHECK(mmap(NULL, refused, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
          MAP_FAILED);
    CHECK(!malloc(refused) && errno == ENOMEM);
    pthread_t threads[4];
    start_churn(threads, 4);
    for (int i = 0; i < 100; i++) CHECK(allocate_each_kind() == 0);
    stop_churn(threads, 4);
    /* A buffer that grows, to 128 MiB. */
    char *grown = NULL;
    for (size_t size = 1 << 20; size <= (size_t)128 << 20; size *= 2) {
        CHECK((grown = (char *)realloc(grown, size)));
        if (size > 1 << 20) CHECK(edges_hold(grown, size / 2, 3));
        mark_edges(grown, size, 3);
    }
    free(grown);
    malloc_trim(0);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
