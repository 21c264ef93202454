/* Two threads free one large block at the same moment: however they meet, the program dies with one
 * line that names a double free of that address. Each attempt is a process of its own. */
#include "check.h"

static void *volatile block;
static volatile int ready, go;

static void *release(void *unused) {
    (void)unused;
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    while (!go) continue;
    free(block);
    return NULL;
}

static void race(size_t size) {
    pthread_t threads[2];
    CHECK((block = malloc(size)));
    dprintf(1, "%p\n", block);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, release, NULL) == 0);
    while (ready < 2) sched_yield();
    go = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    malloc_trim(0);
    _exit(0);
}

/* What is in the pipe whose writers are gone. */
static void drain_pipe(int end, char *text, size_t size) {
    size_t length = 0;
    for (ssize_t got; (got = read(end, text + length, size - 1 - length)) > 0;) length += (size_t)got;
    text[length] = 0;
    close(end);
}

static void attempt(size_t size) {
    int output[2], errors[2];
    CHECK(pipe(output) == 0 && pipe(errors) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(output[1], 1), dup2(errors[1], 2);
        race(size);
    }
    close(output[1]), close(errors[1]);
    const int status = reap(child, 10);
    char address[64], line[1024];
    drain_pipe(output[0], address, sizeof address);
    drain_pipe(errors[0], line, sizeof line);
    address[strcspn(address, "\n")] = 0;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        FAIL("%zu bytes: status %#x, not an abort: %s", size, (unsigned)status, line);
    if (!strstr(line, "double free") || !strstr(line, address))
        FAIL("no double free of %s in: %s", address, line);
    const char *end = strchr(line, '\n');
    if (!end || end[1]) FAIL("not one line: %s", line);
}

int main(int argc, char **argv) {
    const int attempts = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < attempts; i++) attempt(((size_t)3 << 20) << i % 3);
    return 0;
}
