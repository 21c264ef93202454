// A failing new calls the new_handler until it helps or goes, then throws bad_alloc; the nothrow forms give
// null.
#include "rules.h"
#include <exception>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>

static volatile std::size_t huge = PTRDIFF_MAX;
static int handled;
static void *kept;

static void third_time_lucky() {
    if (++handled == 3) std::set_new_handler(nullptr);
}

template <class Make> static bool throws(Make make) {
    handled = 0;
    std::set_new_handler(third_time_lucky);
    try {
        make();
    } catch (const std::bad_alloc &) {
        RULE("the handler is called until it goes", handled == 3);
        return std::get_new_handler() == nullptr;
    }
    return false;
}

static void frees() {
    handled++;
    operator delete(kept);
    kept = nullptr;
    std::set_new_handler(nullptr);
}

// Holds most of what the process may have, so that another block of that size needs the handler's help.
static void a_handler_may_help() {
    const std::size_t most = std::size_t(300) << 20, half = std::size_t(200) << 20;
    rlimit before, low;
    CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
    low = before;
    low.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_DATA, &low) == 0);
    void *more = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more != MAP_FAILED) {
        // An emulator takes the limit and forgets it.
        munmap(more, most);
        return;
    }
    CHECK((kept = operator new(half, std::nothrow)));
    handled = 0;
    std::set_new_handler(frees);
    void *helped = nullptr;
    try {
        helped = operator new(half);
    } catch (const std::bad_alloc &) {
    }
    RULE("a new that the handler helped gives a block", helped && handled == 1);
    kept = helped;
    handled = 0;
    std::set_new_handler(frees);
    helped = operator new(half, std::nothrow);
    RULE("a nothrow new that the handler helped gives a block", helped && handled == 1);
    operator delete(helped);
    CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
}

static void throwing_handler() { throw std::bad_alloc(); }
struct Other {};
static void handler_with_another_exception() { throw Other(); }

static void nothrow_forms_call_it() {
    const auto wide = std::align_val_t(128);
    void *(*const forms[])(std::align_val_t) = {
        [](std::align_val_t) { return operator new(huge, std::nothrow); },
        [](std::align_val_t) { return operator new[](huge, std::nothrow); },
        [](std::align_val_t a) { return operator new(huge, a, std::nothrow); },
        [](std::align_val_t a) { return operator new[](huge, a, std::nothrow); },
    };
    for (auto form : forms) {
        handled = 0;
        std::set_new_handler(third_time_lucky);
        RULE("a nothrow new calls the handler, and gives null in the end", !form(wide) && handled == 3);
    }
}

static int destroyed;
struct Witness {
    ~Witness() { destroyed++; }
};
static void handler_that_unwinds() {
    Witness witness;
    throw Other();
}

static void handlers_that_throw() {
    const auto wide = std::align_val_t(128);
    std::set_new_handler(handler_that_unwinds);
    for (int i = 0; i < 1000; i++)
        if (operator new(huge, std::nothrow)) RULE("a nothrow new swallows any exception", false);
    RULE("a caught handler has been unwound", destroyed == 1000 && !std::uncaught_exceptions());
    std::set_new_handler(throwing_handler);
    RULE("a nothrow new swallows what the handler throws", !operator new(huge, std::nothrow));
    RULE("a nothrow new[] swallows what the handler throws", !operator new[](huge, std::nothrow));
    RULE("an aligned nothrow new does, too", !operator new(huge, wide, std::nothrow));
    RULE("an aligned nothrow new[] does, too", !operator new[](huge, wide, std::nothrow));
    std::set_new_handler(handler_with_another_exception);
    bool passed = false;
    try {
        operator delete(operator new(huge));
    } catch (const Other &) {
        passed = true;
    }
    RULE("what the handler throws passes through new", passed);
    std::set_new_handler(nullptr);
}

int main() {
    const auto wide = std::align_val_t(128);
    RULE("new throws bad_alloc", throws([] { return operator new(huge); }));
    RULE("new[] throws bad_alloc", throws([] { return operator new[](huge); }));
    RULE("an aligned new throws bad_alloc", throws([=] { return operator new(huge, wide); }));
    RULE("an aligned new[] throws bad_alloc", throws([=] { return operator new[](huge, wide); }));
    RULE("new past PTRDIFF_MAX throws", throws([] { return operator new(huge + 1); }));
    RULE("new of all there is throws", throws([] { return operator new(huge * 2 + 1); }));
    // libstdc++ 12 rounds this size up to none.
    if (homenode_required()) {
        RULE("an aligned new of all there is throws", throws([=] { return operator new(huge * 2 + 1, wide); }));
        RULE("an aligned nothrow new of all there is gives null", !operator new(huge * 2 + 1, wide, std::nothrow));
    }
    std::set_new_handler(nullptr);
    bool thrown = false;
    try {
        volatile std::size_t count = huge;
        delete[] new long[count];
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    RULE("an array that is too long throws a bad_alloc", thrown);

    RULE("a nothrow new gives null", !operator new(huge, std::nothrow));
    RULE("a nothrow new[] gives null", !operator new[](huge, std::nothrow));
    RULE("an aligned nothrow new gives null", !operator new(huge, wide, std::nothrow));
    RULE("an aligned nothrow new[] gives null", !operator new[](huge, wide, std::nothrow));
    nothrow_forms_call_it();
    handlers_that_throw();
    a_handler_may_help();
    return rules_end();
}
