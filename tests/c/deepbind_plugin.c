/* A plugin for a_foreign_pointer_is_freed.c: opened with RTLD_DEEPBIND it calls libc's malloc,
 * whatever is preloaded. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

void *plugin_malloc(size_t size) { return malloc(size); }
void *plugin_memalign(size_t alignment, size_t size) { return memalign(alignment, size); }
char *plugin_strdup(const char *text) { return strdup(text); }
