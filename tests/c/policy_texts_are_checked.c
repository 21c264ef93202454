/* A policy's text is taken, told again, or refused with the place of what is wrong; on a machine of one node, real
 * or one of the invented ones. */
#include "check.h"
#include "homenode.h"

__typeof__(hn_set_policy) *set_policy;
__typeof__(hn_get_policy) *get_policy;

static void is_now(const char *text) {
    char told[64] = "?";
    CHECK(get_policy(told, sizeof told) == strlen(text));
    CHECK(!strcmp(told, text));
    char cut[3] = "??";
    CHECK(get_policy(cut, sizeof cut) == strlen(text));
    CHECK(!strncmp(cut, text, 2) && !cut[2]);
    CHECK(get_policy(NULL, 0) == strlen(text));
}

static void refused(const char *text, int error, size_t at) {
    size_t offset = 12345;
    errno = 0;
    CHECK(set_policy(text, &offset) == -1);
    if (errno != error || offset != at) FAIL("\"%s\": errno %d, byte %zu", text, errno, offset);
    errno = 0;
    CHECK(set_policy(text, NULL) == -1 && errno == error);
}

int main(void) {
    set_policy = dlsym(RTLD_DEFAULT, "hn_set_policy");
    get_policy = dlsym(RTLD_DEFAULT, "hn_get_policy");
    CHECK(set_policy && get_policy);
    is_now("local");
    refused("", EINVAL, 0);
    refused("everywhere", EINVAL, 0);
    refused("bind:", EINVAL, 5);
    refused("bind:0,x", EINVAL, 7);
    refused("bind:0\xff", EINVAL, 6);
    refused("interleave:1024", EINVAL, 11);
    refused("weighted:0*0", EINVAL, 11);
    refused("bind:1000", ENODEV, 12345);
    refused("firsttouch", EPERM, 12345);
    errno = 0;
    CHECK(set_policy(NULL, NULL) == -1 && errno == EINVAL);
    is_now("local");
    static const char *const texts[] = {"bind:0", "preferred:0,1000", "interleave:0,1000-1001", "weighted:0*3,1000",
                                        "local"};
    for (int round = 0; round < 100; round++) {
        for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
            errno = 7;
            CHECK(set_policy(texts[i], NULL) == 0 && errno == 7);
            is_now(texts[i]);
            CHECK(allocate_each_kind() == 0);
        }
    }
    /* A process may set so many different ones, and those before stay to be had. */
    char text[32];
    int count = 0;
    for (errno = 0; snprintf(text, sizeof text, "weighted:0*%d", count + 1), !set_policy(text, NULL); count++)
        CHECK(count < 32);
    CHECK(errno == ENOSPC && count >= 16);
    CHECK(set_policy("bind:0", NULL) == 0);
    is_now("bind:0");
    CHECK(allocate_each_kind() == 0);
    return 0;
}
