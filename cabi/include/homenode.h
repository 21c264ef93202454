/* homenode: every byte has a home node.  What libhomenode.so and libhomenode.a offer beside malloc. */
#ifndef HOMENODE_H
#define HOMENODE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version, such as "0.1.0". */
const char *hn_version(void);

/* How a drain makes sure that nobody uses a CPU's cached objects. */
enum hn_drain {
    HN_DRAIN_AUTO = 0,  /* the best that works here */
    HN_DRAIN_FENCE = 1, /* at once; interrupts a CPU that runs this process */
    HN_DRAIN_QUIET = 2  /* never interrupts; may be pending */
};

/* Sends the objects cached on a CPU (or on all) back to the heap, from any CPU.  Returns 0 when done,
 * with the number of objects in *objects unless that is null; 1 when a thread may still be using the
 * cache (HN_DRAIN_QUIET), the kernel refuses the fence, or the caller is a child of vfork or a signal
 * handler that interrupted malloc: call again later; -1 with errno EINVAL for an unknown argument. */
int hn_drain_cpu(unsigned cpu, int how, size_t *objects);
int hn_drain_all(int how, size_t *objects);

/* Writes what homenode has done to a file descriptor, as text.  Returns 0, or -1 with errno EIO. */
int hn_print_stats(int fd);

/* Writes the same as JSON into buffer, at most len bytes, ended by a null byte.  Returns the bytes
 * that the whole text needs, without the null byte. */
size_t hn_stats_json(char *buffer, size_t len);

#ifdef __cplusplus
}
#endif
#endif
