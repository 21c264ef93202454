/* homenode: every byte has a home node.  What libhomenode.so and libhomenode.a offer beside malloc.
 *
 * C99 and C++98 onward.  All calls may be made from any thread, and before the first malloc; none of them
 * returns memory that is to be freed, and none changes errno unless it says so. */
#ifndef HOMENODE_H
#define HOMENODE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, such as "0.1.0": a constant string. */
const char *hn_version(void);

/* How a drain makes sure that nobody uses a CPU's cached objects. */
enum hn_drain {
    HN_DRAIN_AUTO = 0,  /* the best that works here */
    HN_DRAIN_FENCE = 1, /* at once; interrupts a CPU that runs this process */
    HN_DRAIN_QUIET = 2  /* never interrupts; may be pending */
};

/* Sends the objects that are cached on a CPU back to the heap, from any CPU.
 *   cpu      the kernel's number of the CPU, from 0; one that does not exist has no objects
 *   how      one of enum hn_drain
 *   objects  null, or where the number of objects goes that were sent back; written when the result is 0 alone
 * Returns
 *    0  done
 *    1  not done, call again later: a thread may still be using the cache (HN_DRAIN_QUIET), the kernel refuses
 *       the fence, or the caller is a child of vfork or a signal handler that interrupted malloc
 *   -1  errno EINVAL: an unknown how, or a CPU number that no machine has */
int hn_drain_cpu(unsigned cpu, int how, size_t *objects);

/* hn_drain_cpu for all CPUs, and the sum of their objects; 1 if one of them is not done. */
int hn_drain_all(int how, size_t *objects);

/* Writes what homenode has done to the file descriptor fd, as text: mode, nodes, compound pages and their
 * refcounts, objects out, moved, cached and racked, misses, each CPU's slab, each class in use, page faults,
 * system calls that were refused.  Hits are told under HOMENODE_STATS=full alone.  Allocates nothing and takes no
 * lock, so other threads and signal handlers may go on.
 * Returns 0; or -1 with errno EIO: fd cannot be written to, or the allocator cannot start. */
int hn_print_stats(int fd);

/* Writes the same as one JSON object.
 *   buffer  len bytes, which get as much of the text as fits, and a null byte behind it; null if len is 0
 * Returns the bytes that the whole text needs, without the null byte: it was cut off unless that is less than
 * len.  No errors: the numbers of an allocator that cannot start are zeros. */
size_t hn_stats_json(char *buffer, size_t len);

/* Sets the policy of the process: on which nodes the memory is that it gets from now on.  Nodes are the kernel's
 * numbers.
 *   policy   "local" (on the node of the CPU that allocates), "bind:1" (there or nowhere: null and ENOMEM),
 *            "preferred:0,1" (there while there is memory), "interleave:0-3" (in turn), "weighted:0*3,2*1"
 *            (in turn, each as often as its weight); "firsttouch" is for HOMENODE_POLICY alone
 *   offset   null, or where the number of bytes of policy goes that come before an error in it; written when errno
 *            is EINVAL alone
 * Nodes that the machine does not have, or the process may not use, are left out.
 * Returns 0; or -1, and the policy stays, with errno
 *   EINVAL  policy is null, or not such a text
 *   ENODEV  none of the nodes is there
 *   ENOSPC  the process has set 32 different policies already
 *   EPERM   firsttouch after the start, or another policy after a start with firsttouch
 *   EAGAIN  the caller is a signal handler that interrupted malloc */
int hn_set_policy(const char *policy, size_t *offset);

/* Writes the policy of the process as text, as hn_stats_json does: the bytes that it needs. */
size_t hn_get_policy(char *buffer, size_t len);

/* Hands out size bytes on a node while that has memory, else on the nearest that has some; for free and realloc.
 * Returns null with errno EINVAL (no such node with memory that the process may use) or ENOMEM. */
void *hn_alloc_onnode(size_t size, int node);

/* The home node of an address: the node that its memory is given to.  Asks the system nothing.
 * Returns -1 with errno EFAULT for memory that is not homenode's. */
int hn_node_of(const void *address);

/* Asks the system where pages are, of any memory.
 *   start  an address in the first of them
 *   pages  how many base pages
 *   nodes  gets a number for each: the node's, or a negative error (-ENOENT: never touched)
 * Returns 0; or -1 with errno EINVAL (nodes is null) or the system's (EPERM, ENOSYS: it does not tell). */
int hn_pages_of(const void *start, size_t pages, int *nodes);

/* Brings a block to a node: as realloc, its address may be another one, of the same alignment.
 * Returns null, and the block stays, with errno EINVAL (as hn_alloc_onnode), EFAULT (as hn_node_of) or ENOMEM. */
void *hn_migrate(void *block, int node);

#ifdef __cplusplus
}
#endif
#endif
