// Every C++17 form of new gives aligned memory that its matching deletes accept, sized or not.
#include "rules.h"
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static void *made(void *p, std::size_t size, std::size_t alignment) {
    rules_at = size;
    RULE("new gives aligned memory", on(p, alignment));
    RULE("new gives at least its size", malloc_usable_size(p) >= size);
    mark_edges(p, size, 5);
    return p;
}

struct alignas(256) Wide {
    char bytes[300];
};

struct Counted {
    static int live;
    long words[5];
    Counted() { live++; }
    ~Counted() { live--; }
};
int Counted::live;

static void plain(std::size_t n) {
    operator delete(made(operator new(n), n, 16));
    operator delete(made(operator new(n), n, 16), n);
    operator delete(made(operator new(n), n, 16), std::nothrow);
    operator delete(made(operator new(n, std::nothrow), n, 16), std::nothrow);
    operator delete(made(operator new(n, std::nothrow), n, 16));
    operator delete(made(operator new(n, std::nothrow), n, 16), n);
    operator delete[](made(operator new[](n), n, 16));
    operator delete[](made(operator new[](n), n, 16), n);
    operator delete[](made(operator new[](n), n, 16), std::nothrow);
    operator delete[](made(operator new[](n, std::nothrow), n, 16), std::nothrow);
    operator delete[](made(operator new[](n, std::nothrow), n, 16));
    operator delete[](made(operator new[](n, std::nothrow), n, 16), n);
}

static void aligned(std::size_t n, std::size_t alignment) {
    const auto a = std::align_val_t(alignment);
    operator delete(made(operator new(n, a), n, alignment), a);
    operator delete(made(operator new(n, a), n, alignment), n, a);
    operator delete(made(operator new(n, a), n, alignment), a, std::nothrow);
    operator delete(made(operator new(n, a, std::nothrow), n, alignment), a, std::nothrow);
    operator delete(made(operator new(n, a, std::nothrow), n, alignment), n, a);
    operator delete[](made(operator new[](n, a), n, alignment), a);
    operator delete[](made(operator new[](n, a), n, alignment), n, a);
    operator delete[](made(operator new[](n, a), n, alignment), a, std::nothrow);
    operator delete[](made(operator new[](n, a, std::nothrow), n, alignment), a, std::nothrow);
    operator delete[](made(operator new[](n, a, std::nothrow), n, alignment), n, a);
}

static void nothing() {
    const auto a = std::align_val_t(64);
    void *blocks[] = {operator new(0),    operator new(0, std::nothrow),    operator new[](0),
                      operator new(0, a), operator new(0, a, std::nothrow), operator new[](0, a)};
    for (int i = 0; i < 6; i++) {
        RULE("new of no bytes gives a block", blocks[i]);
        for (int k = 0; k < i; k++) RULE("two news of no bytes give two blocks", blocks[i] != blocks[k]);
    }
    for (int i = 0; i < 3; i++) operator delete(blocks[i]), operator delete(blocks[i + 3], a);
    operator delete(nullptr);
    operator delete[](nullptr);
    operator delete(nullptr, std::size_t(10));
    operator delete[](nullptr, std::size_t(10));
    operator delete(nullptr, std::nothrow);
    operator delete(nullptr, a);
    operator delete(nullptr, std::size_t(10), a);
    operator delete(nullptr, a, std::nothrow);
}

static void work() {
    for (std::size_t n = 0; n < (std::size_t(4) << 20); n = n * 2 + 1) {
        plain(n);
        for (std::size_t alignment = 1; alignment <= 1 << 21; alignment *= 8) aligned(n, alignment);
    }
}

static void expressions() {
    std::vector<Wide> wide;
    for (int i = 0; i < 2000; i++) wide.emplace_back();
    RULE("a vector of wide items is aligned", on(wide.data(), 256));
    auto one = std::make_unique<Wide>();
    RULE("a wide item is aligned", on(one.get(), 256));
    std::unique_ptr<Wide[]> some(new Wide[10]);
    RULE("an array of wide items is aligned", on(some.get(), 256));
    delete new Counted;
    delete[] new Counted[100];
    RULE("each item of an array is destroyed", Counted::live == 0);
    std::string text;
    for (int i = 0; i < 100000; i++) text += 'x';
    auto shared = std::make_shared<std::vector<std::string>>(1000, text.substr(0, 100));
    RULE("containers keep what they hold", shared->back().size() == 100);
    KEEPS_ERRNO(delete new Wide);
    KEEPS_ERRNO(operator delete(operator new(100)));
}

int main() {
    nothing();
    expressions();
    work();
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([] {
            for (std::size_t n = 0; n < 100000; n = n * 2 + 1)
                for (int k = 0; k < 50; k++) operator delete(operator new(n), n);
        });
    for (auto &thread : threads) thread.join();
    return rules_end();
}
