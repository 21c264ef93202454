/* The rules of a conformance program.  Each is counted once, however often it is asked, and named when it is
 * broken first; the program goes on and ends with rules_end(). */
#ifndef RULES_H
#define RULES_H
#include "check.h"

struct rule {
    const char *name;
    int asked, broken;
};

static int rules_asked, rules_broken;
/* What the rule was asked of, for the message: a size, most often. */
static volatile size_t rules_at;

static inline void ask_rule(struct rule *rule, int holds) {
    int before = errno;
    if (!rule->asked) rule->asked = 1, rules_asked++;
    if (!holds && !rule->broken) {
        rule->broken = 1, rules_broken++;
        dprintf(2, "broken: %s (at %zu, errno %d)\n", rule->name, rules_at, before);
    }
    errno = before;
}

#define RULE(name, condition)                                                                      \
    do {                                                                                           \
        static struct rule this_rule = {name, 0, 0};                                               \
        ask_rule(&this_rule, (condition) ? 1 : 0);                                                 \
    } while (0)

/* A rule that a statement does not change errno. */
#define KEEPS_ERRNO(statement)                                                                     \
    do {                                                                                           \
        errno = 4321;                                                                              \
        statement;                                                                                 \
        RULE("errno is untouched by " #statement, errno == 4321);                                  \
    } while (0)

/* A rule that a call is NULL and leaves an errno. */
#define REFUSED(call, error)                                                                       \
    do {                                                                                           \
        errno = 0;                                                                                 \
        void *volatile refused = (call);                                                           \
        RULE(#call " is NULL and " #error, !refused && errno == error);                            \
        free(refused);                                                                             \
    } while (0)

static inline int rules_end(void) {
    dprintf(1, "%d rules, %d broken\n", rules_asked, rules_broken);
    return rules_broken ? 1 : 0;
}

/* The pointer, whose length the compiler does not know: FORTIFY would stop writes to the usable part. */
static inline unsigned char *unfortified(void *p) {
    void *volatile hidden = p;
    return (unsigned char *)hidden;
}

static inline int on(const void *p, size_t alignment) { return p && (uintptr_t)p % alignment == 0; }

static inline int is_zero(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i]) return 0;
    return 1;
}
#endif
