//! Fault injection, counters of system calls refused, and the counter of maps.
//!
//! Every system call of the allocator passes [`admit`], so a test can make the n-th call of a kind fail,
//! and what the kernel refuses is counted by kind.

use super::errno::Errno;
use crate::base::sync::{AtomicU32, Ordering};

/// The kinds of system call that the allocator makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Call {
    Mmap,
    Munmap,
    Mprotect,
    Madvise,
    Mbind,
    GetMempolicy,
    Futex,
    Rseq,
    Membarrier,
    Getcpu,
    Getpid,
    Open,
    Read,
    Write,
    Close,
    Getdents,
    Affinity,
    Rlimit,
    Mremap,
    /// Or the fork that takes its place.
    Vfork,
    Getrusage,
    Uname,
    MovePages,
}

/// Names of the calls, in the order of [`Call`].
pub(crate) const CALL_NAMES: [&str; CALLS] = [
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "mbind",
    "get_mempolicy",
    "futex",
    "rseq",
    "membarrier",
    "getcpu",
    "getpid",
    "open",
    "read",
    "write",
    "close",
    "getdents",
    "affinity",
    "rlimit",
    "mremap",
    "vfork",
    "getrusage",
    "uname",
    "move_pages",
];
const CALLS: usize = 23;

/// Calls refused by the kernel (or by a test), by kind.
static REFUSED: [AtomicU32; CALLS] = [const { AtomicU32::new(0) }; CALLS];
/// Calls still let through before one is failed, by kind; 0 means: never fail.
static FUSES: [AtomicU32; CALLS] = [const { AtomicU32::new(0) }; CALLS];
/// Calls that fail after that one, without a break, by kind.
static STREAKS: [AtomicU32; CALLS] = [const { AtomicU32::new(0) }; CALLS];

/// Calls so far that can split a map: each adds two maps at most, and usually none, since neighbours
/// that are alike are merged.
static SPLITS: AtomicU32 = AtomicU32::new(0);

/// Lets the call go to the kernel, or answers in its place when a test wants it to fail.
pub(super) fn admit(call: Call) -> Result<(), Errno> {
    let fuse = &FUSES[call as usize];
    // A sticky word is read before it is written: no shared line is dirtied when no test runs.
    if fuse.load(Ordering::Relaxed) == 0 || fuse.fetch_sub(1, Ordering::Relaxed) != 1 {
        return Ok(());
    }
    let streak = &STREAKS[call as usize];
    let more = streak.load(Ordering::Relaxed);
    if more > 0 {
        streak.store(more - 1, Ordering::Relaxed);
        fuse.store(1, Ordering::Relaxed);
    }
    Err(match call {
        Call::Membarrier => Errno::PERM,
        Call::Vfork => Errno::AGAIN,
        _ => Errno::NOMEM,
    })
}

/// Counts a refusal.
pub(super) fn refused(call: Call) {
    REFUSED[call as usize].fetch_add(1, Ordering::Relaxed);
}

/// Calls of each kind that were refused, by name.
pub(crate) fn refusals() -> impl Iterator<Item = (&'static str, u32)> {
    CALL_NAMES.iter().zip(&REFUSED).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
}

/// Lets `after` more calls named `call` through, then fails `times` of them, at least one.  For tests.
pub(crate) fn fail_after(call: &str, after: u32, times: u32) -> bool {
    let Some(index) = CALL_NAMES.iter().position(|name| *name == call) else { return false };
    STREAKS[index].store(times.saturating_sub(1), Ordering::Relaxed);
    FUSES[index].store(after + 1, Ordering::Relaxed);
    true
}

/// Calls named `call` that are still let through before one is failed; none where none is to fail.  For
/// tests.
pub(crate) fn until_failure(call: &str) -> Option<u32> {
    let index = CALL_NAMES.iter().position(|name| *name == call)?;
    FUSES[index].load(Ordering::Relaxed).checked_sub(1)
}

/// Notes a call that can split a map in two.
pub(super) fn note_split() {
    SPLITS.fetch_add(1, Ordering::Relaxed);
}

/// Calls so far that can split a map.
pub(crate) fn splits() -> u32 {
    SPLITS.load(Ordering::Relaxed)
}
