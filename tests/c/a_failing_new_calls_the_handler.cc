// A failing new calls the new_handler, then throws bad_alloc; the nothrow forms give null.
#include "check.h"
#include <new>

static volatile std::size_t huge = PTRDIFF_MAX;
static int handled;

static void handler() {
    if (++handled == 3) std::set_new_handler(nullptr);
}

template <class Make> static void throws(Make make) {
    handled = 0;
    std::set_new_handler(handler);
    bool thrown = false;
    try {
        void *p = make();
        if (p) FAIL("a block of PTRDIFF_MAX bytes");
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    CHECK(handled == 3);
}

static void throwing_handler() { throw std::bad_alloc(); }

int main() {
    const auto wide = std::align_val_t(128);
    throws([] { return operator new(huge); });
    throws([] { return operator new[](huge); });
    throws([=] { return operator new(huge, wide); });
    throws([=] { return operator new[](huge, wide); });

    CHECK(!operator new(huge, std::nothrow));
    CHECK(!operator new[](huge, std::nothrow));
    CHECK(!operator new(huge, wide, std::nothrow));
    CHECK(!operator new[](huge, wide, std::nothrow));

    // nothrow forms swallow what the handler throws.
    std::set_new_handler(throwing_handler);
    CHECK(!operator new(huge, std::nothrow));
    CHECK(!operator new[](huge, wide, std::nothrow));
    return 0;
}
