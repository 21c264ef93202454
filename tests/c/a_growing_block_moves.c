/* Blocks that grow together keep what they hold, untouched pages among it; so do a child's, who shares all
 * pages with its parent; and where the kernel refuses to move pages, they are copied.  Argument: "refused",
 * "old" (the kernel has no such moves), "limited" (to less than what is mapped) or nothing. */
#include "seccomp.h"
#include "stats.h"
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { MIB = 1 << 20, BLOCKS = 4, PAGE = 4096 };
static const size_t most = (size_t)24 * MIB;

struct block {
    unsigned char *start;
    size_t length;
    unsigned char tag;
};

/* Every third page is written. */
static void write_from(struct block *b, size_t from) {
    for (size_t at = from / PAGE * PAGE; at + PAGE <= b->length; at += 3 * PAGE)
        memset(b->start + at, b->tag, PAGE);
}

static void check(const struct block *b, size_t length) {
    for (size_t at = 0; at + PAGE <= length; at += 3 * PAGE)
        if (!edges_hold(b->start + at, PAGE, b->tag)) FAIL("a page changed at %zu of %zu", at, length);
}

static void grow(struct block *b) {
    const size_t before = b->length, step = 3 * PAGE;
    b->length = (before + before / 2) / step * step;
    CHECK((b->start = realloc(b->start, b->length)));
    check(b, before);
    write_from(b, before);
}

static void grow_together(void) {
    static struct block blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = (struct block){malloc(30 * PAGE), 30 * PAGE, (unsigned char)(i + 1)};
        CHECK(blocks[i].start);
        write_from(&blocks[i], 0);
    }
    for (int grown = 1; grown;) {
        grown = 0;
        for (int i = 0; i < BLOCKS; i++)
            if (blocks[i].length < most) grow(&blocks[i]), grown = 1;
    }
    const pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0; i < BLOCKS; i++) {
        if (child == 0) blocks[i].tag += BLOCKS, write_from(&blocks[i], 0);
        grow(&blocks[i]);
        check(&blocks[i], blocks[i].length);
        free(blocks[i].start);
    }
    if (child == 0) _exit(0);
    CHECK(reap(child, 30) == 0);
}

int main(int count, char **arguments) {
    const char *refusal = count > 1 ? arguments[1] : "";
    move_to(0);
    if (!strcmp(refusal, "refused")) refuse_call(SYS_mremap, ENOMEM);
    if (!strcmp(refusal, "old")) refuse_call(SYS_mremap, EINVAL);
    if (!strcmp(refusal, "limited")) {
        free(malloc(1));
        const struct rlimit limit = {MIB, RLIM_INFINITY};
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    for (int round = 0; round < 2; round++) grow_together();
    const long seams = statistic("map_seams");
    if (*refusal ? seams != 0 : seams == 0) FAIL("%ld seams", seams);
    /* Where pages came from, zeros are. */
    unsigned char *zeros = calloc(100, MIB);
    CHECK(zeros && !zeros[0] && !memcmp(zeros, zeros + 1, (size_t)100 * MIB - 1));
    free(zeros);
    return 0;
}
