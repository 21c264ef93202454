/* Forks while other threads hold stdio's locks and allocate inside them: a cookie stream's write
 * function mallocs under the stream's lock, and fflush(NULL) calls it under the list lock, which
 * fork itself takes. argv: number of forks. Case F2, first half. */
#include "check.h"

static ssize_t write_and_allocate(void *cookie, const char *text, size_t length) {
    (void)cookie, (void)text;
    for (int i = 0; i < 20; i++) {
        char *p = malloc(length + (size_t)i * 100);
        if (!p) return 0;
        p[0] = 1;
        free(p);
    }
    return (ssize_t)length;
}

static FILE *open_cookie(void) {
    cookie_io_functions_t io = {.write = write_and_allocate};
    return fopencookie(NULL, "w", io);
}

static void *flush_all(void *unused) {
    (void)unused;
    FILE *out = open_cookie();
    while (!churn_stops) {
        fprintf(out, "%d and some more words", 5);
        fflush(NULL);
    }
    fclose(out);
    return NULL;
}

static void *open_and_close(void *unused) {
    (void)unused;
    while (!churn_stops) {
        FILE *out = open_cookie();
        setvbuf(out, NULL, _IOLBF, 4096);
        fprintf(out, "one line\n");
        fclose(out);
    }
    return NULL;
}

static void be_the_child(void) {
    if (allocate_each_kind()) _exit(2);
    FILE *out = fopen("/dev/null", "w");
    if (!out || fprintf(out, "%s %d", "words", 1) < 0 || fclose(out)) _exit(3);
    char *text = NULL;
    if (asprintf(&text, "%0200d", 7) != 200) _exit(4);
    free(text);
    _exit(0);
}

int main(int argc, char **argv) {
    int forks = argc > 1 ? atoi(argv[1]) : 50, hung = 0, failed = 0;
    pthread_t flusher, opener, churner;
    CHECK(pthread_create(&flusher, NULL, flush_all, NULL) == 0);
    CHECK(pthread_create(&opener, NULL, open_and_close, NULL) == 0);
    start_churn(&churner, 1);
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) be_the_child();
        int status = reap(child, 10);
        if (status == HUNG) hung++;
        else if (status) failed++;
    }
    stop_churn(&churner, 1);
    pthread_join(flusher, NULL);
    pthread_join(opener, NULL);
    if (hung || failed) FAIL("%d forks: %d hung, %d failed", forks, hung, failed);
    return 0;
}
