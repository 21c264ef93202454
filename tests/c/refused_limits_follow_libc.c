/* The wrapped calls refuse what the system refuses, with its errno, and set other limits as ever. */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

int main(void) {
    struct rlimit limit, wrong = {2, 1};
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    errno = 0;
    CHECK(setrlimit(RLIMIT_AS, &wrong) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(setrlimit((__rlimit_resource_t)999, &limit) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(prlimit(0x3fffffff, RLIMIT_AS, NULL, &limit) == -1 && errno == ESRCH);
    errno = 0;
    CHECK(mlockall(0) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(mlockall(1 << 20 | MCL_CURRENT) == -1 && errno == EINVAL);
    CHECK(getrlimit(RLIMIT_CORE, &limit) == 0);
    limit.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_CORE, &limit) == 0);
    CHECK(prlimit(0, RLIMIT_CORE, NULL, &limit) == 0 && limit.rlim_cur == 0);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
