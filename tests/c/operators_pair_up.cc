// Every C++17 form of new gives aligned memory that its matching deletes accept, sized or not.
#include "check.h"
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static void *made(void *p, std::size_t size, std::size_t alignment) {
    if (!p || reinterpret_cast<std::uintptr_t>(p) % alignment) FAIL("size %zu: %p", size, p);
    mark_edges(p, size, 5);
    return p;
}

struct alignas(256) Wide {
    char bytes[300];
};

static void plain(std::size_t n) {
    operator delete(made(operator new(n), n, 16));
    operator delete(made(operator new(n), n, 16), n);
    operator delete(made(operator new(n, std::nothrow), n, 16), std::nothrow);
    operator delete[](made(operator new[](n), n, 16));
    operator delete[](made(operator new[](n), n, 16), n);
    operator delete[](made(operator new[](n, std::nothrow), n, 16), std::nothrow);
}

static void aligned(std::size_t n, std::size_t alignment) {
    const auto a = std::align_val_t(alignment);
    operator delete(made(operator new(n, a), n, alignment), a);
    operator delete(made(operator new(n, a), n, alignment), n, a);
    operator delete(made(operator new(n, a, std::nothrow), n, alignment), a, std::nothrow);
    operator delete[](made(operator new[](n, a), n, alignment), a);
    operator delete[](made(operator new[](n, a), n, alignment), n, a);
    operator delete[](made(operator new[](n, a, std::nothrow), n, alignment), a, std::nothrow);
}

static void work() {
    for (std::size_t n = 0; n < (std::size_t(4) << 20); n = n * 2 + 1) {
        plain(n);
        for (std::size_t alignment = 1; alignment <= 1 << 16; alignment *= 4) aligned(n, alignment);
    }
    operator delete(nullptr);
    operator delete(nullptr, std::size_t(10));
    std::vector<Wide> wide;
    for (int i = 0; i < 2000; i++) wide.emplace_back();
    CHECK(reinterpret_cast<std::uintptr_t>(wide.data()) % 256 == 0);
    std::string text;
    for (int i = 0; i < 100000; i++) text += 'x';
    auto shared = std::make_shared<std::vector<std::string>>(1000, text.substr(0, 100));
    CHECK(shared->back().size() == 100);
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(work);
    for (auto &thread : threads) thread.join();
}
