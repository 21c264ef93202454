/* A block freed once before and once after fork, by the child. */
#include "misuse.h"

int main(void) {
    void *p = malloc(500);
    announce(p);
    free(p);
    const pid_t child = fork();
    if (child == 0) {
        free(p);
        drain();
        _exit(0);
    }
    const int status = reap(child, 10);
    if (WIFSIGNALED(status)) {
        signal(SIGABRT, SIG_DFL);
        kill(getpid(), WTERMSIG(status));
    }
    survived();
    drain();
    return 0;
}
