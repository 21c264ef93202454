/* A C program loads a C++ library for itself alone: its new fails as in a C++ program. argv: a library with a main. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc > 1);
    CHECK(!dlsym(RTLD_DEFAULT, "__cxa_throw"));
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) FAIL("%s", dlerror());
    int (*other_main)(void) = (int (*)(void))dlsym(library, "main");
    CHECK(other_main && other_main != (int (*)(void))main);
    return other_main();
}
