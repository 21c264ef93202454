/* A setuid copy of this program, started by another user with LD_PRELOAD and HOMENODE_* set: it
 * must start and allocate. "linked": the library comes by a run path and must be there. Ends with 77 where the system did not make it secure (nosuid mount). */
#define CHECK_STATIC /* ld.so drops the preload of a secure program, which is right */
#include "check.h"
#include <sys/auxv.h>

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "linked")) CHECK(dlsym(RTLD_DEFAULT, "hn_version"));
    CHECK(allocate_each_kind() == 0);
    if (!getauxval(AT_SECURE)) SKIP("setuid has no effect here");
    CHECK(geteuid() != getuid());
    return 0;
}
