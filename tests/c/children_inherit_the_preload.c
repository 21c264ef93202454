/* Every program named in argv starts as a child with this environment (LD_PRELOAD with it) and
 * ends with 0. A program this kernel cannot run at all is no failure. */
#include "check.h"
#include <spawn.h>

extern char **environ;

int main(int argc, char **argv) {
    CHECK(argc > 1);
    for (int i = 1; i < argc; i++) {
        char *child_argv[] = {argv[i], NULL};
        pid_t child;
        int refused = posix_spawn(&child, argv[i], NULL, NULL, child_argv, environ);
        if (refused == ENOEXEC) continue;
        if (refused) FAIL("%s does not start: errno %d", argv[i], refused);
        int status = reap(child, 20);
        if (status) FAIL("%s ended with status %#x", argv[i], (unsigned)status);
    }
    return 0;
}
