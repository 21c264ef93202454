/* One system call of this thread, and of its children, is refused with an errno or goes to the
 * handler of SIGSYS: so a test stops a thread, or kills a process, inside the allocator. */
#ifndef SECCOMP_H
#define SECCOMP_H
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static inline void filter_call(unsigned call, unsigned action) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("no seccomp filters here");
}

static inline void refuse_call(unsigned call, unsigned error) {
    filter_call(call, SECCOMP_RET_ERRNO | error);
}

static inline void trap_call(unsigned call) { filter_call(call, SECCOMP_RET_TRAP); }

/* From here on every thread may make `calls` alone; others are answered with `otherwise`. */
static inline void allow_only(const int *calls, int count, unsigned otherwise) {
    struct sock_filter filter[64] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    CHECK(count < 60);
    for (int i = 0; i < count; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                     (unsigned char)(count - i), 0);
    filter[1 + count] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    filter[2 + count] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)(count + 3), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        SKIP("no seccomp filters here");
}

/* Allocates and trims until the allocator has given memory back and asked for more: with the calls
 * that do so trapped, this stops under the locks of the page heap (madvise) or of the slice
 * (mprotect). `kept` stays allocated. */
enum { KEPT_BLOCKS = 200 };
static inline void give_back_and_grow(void *kept[KEPT_BLOCKS]) {
    char *p = (char *)malloc(3 << 20);
    CHECK(p);
    mark_edges(p, 3 << 20, 1);
    free(p);
    malloc_trim(0);
    for (int i = 0; i < KEPT_BLOCKS; i++) CHECK((kept[i] = malloc(1 << 20)));
}
#endif
