/* Pointers that a RTLD_DEEPBIND plugin got from libc's malloc go back to libc when the program
 * frees, reallocates or measures them. argv: path of the plugin. Case P1, first direction. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!plugin) FAIL("dlopen: %s", dlerror());
    void *(*plugin_malloc)(size_t), *(*plugin_memalign)(size_t, size_t);
    char *(*plugin_strdup)(const char *);
    *(void **)&plugin_malloc = dlsym(plugin, "plugin_malloc");
    *(void **)&plugin_memalign = dlsym(plugin, "plugin_memalign");
    *(void **)&plugin_strdup = dlsym(plugin, "plugin_strdup");
    CHECK(plugin_malloc && plugin_memalign && plugin_strdup);

    static const size_t sizes[] = {0, 1, 24, 100, 1000, 5000, 40000, 140000, 1 << 20, 5 << 20};
    for (int round = 0; round < 50; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t size = sizes[i];
            char *p = plugin_malloc(size);
            CHECK(p && malloc_usable_size(p) >= size);
            mark_edges(p, size, 3);
            p = realloc(p, size * 2 + 10);
            CHECK(p && (!size || (p[0] == 3 && p[size - 1] == 3)));
            free(p);
            free(plugin_malloc(size));
            free(plugin_memalign(256, size));
            void (*free_sized_)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
            if (free_sized_) free_sized_(plugin_malloc(size), size);
            CHECK(realloc(plugin_malloc(size + 1), 0) == NULL);
        }
    char *text = plugin_strdup("a string of the plugin");
    CHECK(text && strcmp(text, "a string of the plugin") == 0);
    errno = 1234;
    free(text);
    CHECK(errno == 1234);
    CHECK(allocate_each_kind() == 0);
    return 0;
}
