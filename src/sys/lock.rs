//! The one lock: a futex mutex that knows its owner, and is taken over from threads that fork left behind.
//!
//! ```text
//!  63            48 47                                  6 5      1   0
//! +----------------+-------------------------------------+--------+---+
//! |   generation   |   thread pointer of the owner / 64  |   0    | W |    0: free;  W: someone sleeps
//! +----------------+-------------------------------------+--------+---+
//! ```
//! A child of fork has a new generation (see [`super::process`]).  A lock that is held with an older
//! one, by another thread than the one that lived on, has no owner any more: the next to come takes
//! it as [`Held::orphaned`] and must first rebuild what the lock guards.
//!
//! A signal handler never waits for its own thread: the slow path is not entered twice by a thread
//! (see `front::busy`), so no lock is asked for by a handler that interrupted a holder.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | K1 `word` compare-exchange in `enter`, `try_enter` | Acquire | K2 | sees what the last holder wrote |
//! | K2 `word` swap in `drop` | Release | K1 | publishes what the holder wrote |

use super::arch::{thread_block, thread_pointer};
use super::process;
use super::wait::{wait_while, wake_one};
use crate::base::config::SPINS;
use crate::base::sync::{AtomicU64, Ordering};

const WAITERS: u64 = 1;
const OWNER_MASK: u64 = (1 << 48) - 64;
const GENERATION_SHIFT: u32 = 48;

/// Lock ranks: a thread takes locks in rising order.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Rank {
    /// Start of the process.
    Start,
    /// The writers of a CPU's table entry.
    Flip,
    /// A class's spans on one node.
    Pool,
    /// A node's lists of compounds.
    PageHeap,
    /// A node's slice.
    Slice,
}

/// A mutex.  Zero bytes are a free one.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Lock(AtomicU64);

/// Proof that the lock is held; leaving it unlocks.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    word: &'a AtomicU64,
    rank: Rank,
    orphaned: bool,
}

impl Lock {
    /// A free lock.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes the lock, waiting for its holder.
    pub(crate) fn enter(&self, rank: Rank) -> Held<'_> {
        let mine = identity();
        // K1
        if self.0.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return self.entered(rank, false);
        }
        self.enter_slowly(rank)
    }

    /// Takes the lock if nobody alive holds it.
    pub(crate) fn try_enter(&self, rank: Rank) -> Option<Held<'_>> {
        let word = self.0.load(Ordering::Relaxed);
        let orphaned = word != 0 && is_orphaned(word);
        if word != 0 && !orphaned {
            return None;
        }
        // K1
        self.0.compare_exchange(word, identity(), Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(self.entered(rank, orphaned))
    }

    #[cold]
    fn enter_slowly(&self, rank: Rank) -> Held<'_> {
        let mut spins = 0;
        let mut mine = identity();
        loop {
            let word = self.0.load(Ordering::Relaxed);
            process::notice_fork();
            if word == 0 || is_orphaned(word) {
                mine = identity() | (mine & WAITERS);
                // K1
                if self.0.compare_exchange(word, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return self.entered(rank, word != 0);
                }
            } else if spins < SPINS {
                spins += 1;
                core::hint::spin_loop();
            } else if word & WAITERS != 0
                || self.0.compare_exchange(word, word | WAITERS, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                wait_while(&self.0, word | WAITERS);
                // Others may sleep beside us: who has slept wakes the next one.
                mine |= WAITERS;
            }
        }
    }

    fn entered(&self, rank: Rank, orphaned: bool) -> Held<'_> {
        if cfg!(debug_assertions) {
            let ranks = &thread_block().ranks;
            let held = ranks.load(Ordering::Relaxed);
            debug_assert!(held >> (rank as u8) == 0, "locks are taken in rising rank");
            ranks.store(held | 1 << (rank as u8), Ordering::Relaxed);
        }
        Held { word: &self.0, rank, orphaned }
    }
}

impl Held<'_> {
    /// True when the last holder was a thread that fork left behind: what the lock guards may be
    /// half changed, and is rebuilt from run maps and bitmaps by whoever holds this.
    pub(crate) fn orphaned(&self) -> bool {
        self.orphaned
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            let ranks = &thread_block().ranks;
            ranks.store(ranks.load(Ordering::Relaxed) & !(1 << (self.rank as u8)), Ordering::Relaxed);
        }
        // K2
        let word = self.word.swap(0, Ordering::Release);
        if word & WAITERS != 0 {
            wake_one(self.word);
        }
    }
}

/// What this thread writes into a lock it takes.
fn identity() -> u64 {
    u64::from(process::generation()) << GENERATION_SHIFT | (thread_pointer() as u64 & OWNER_MASK)
}

/// True when the holder did not live through a fork.
fn is_orphaned(word: u64) -> bool {
    word >> GENERATION_SHIFT != u64::from(process::generation())
        && word & OWNER_MASK != process::survivor() as u64 & OWNER_MASK
}
