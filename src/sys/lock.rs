//! The one lock: a futex mutex that knows its owner, and is taken over from threads that fork left behind.
//!
//! ```text
//!  63            48 47                                  6 5    2  1   0
//! +----------------+-------------------------------------+------+---+---+
//! |   generation   |   thread pointer of the owner / 64  |   0  | V | W |
//! +----------------+-------------------------------------+------+---+---+
//! all zero: free;  W: someone sleeps;  V: the owner is a child of vfork, in its parent's thread
//! ```
//! A child of fork has a new generation (see [`super::process`]).  A lock that is held with an older
//! one, by another thread than the one that lived on, has no owner any more: the next to come takes
//! it as [`Held::orphaned`] and must first rebuild what the lock guards.  So has a lock that a child
//! of vfork holds when its parent runs again.
//!
//! A signal handler never waits for its own thread: the slow path is not entered twice by a thread
//! (see `front::busy`), so no lock is asked for by a handler that interrupted a holder.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | K1 `word` compare-exchange in `enter`, `try_enter` | Acquire | K2 | sees what the last holder wrote |
//! | K2 `word` swap in `drop` | Release | K1 | publishes what the holder wrote |

use crossbeam_utils::Backoff;

use super::arch::{thread_block, thread_pointer};
use super::process;
use super::wait::{wait_while, wake_one};
use crate::base::config::SPINS;
use crate::base::sync::{AtomicU64, Ordering, order};

const WAITERS: u64 = 1;
const VFORK_CHILD: u64 = 2;
const OWNER_MASK: u64 = (1 << 48) - 64;
const GENERATION_SHIFT: u32 = 48;

/// Lock ranks: a thread takes locks in rising order.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Rank {
    /// Start of the process.
    Start,
    /// The policies that were set.
    Policy,
    /// The writers of a CPU's table entry.
    Flip,
    /// Freed blocks that are held back.
    Quarantine,
    /// A class's spans on one node.
    Pool,
    /// A node's lists of compounds.
    PageHeap,
    /// A node's slice.
    Slice,
}

/// A mutex.  Zero bytes are a free one.
#[cfg_attr(loom, derive(Default))]
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
        if self.0.compare_exchange(0, mine, order!(K1, Acquire), Ordering::Relaxed).is_ok() {
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
        self.0.compare_exchange(word, identity(), order!(K1, Acquire), Ordering::Relaxed).ok()?;
        Some(self.entered(rank, orphaned))
    }

    #[cold]
    fn enter_slowly(&self, rank: Rank) -> Held<'_> {
        let backoff = Backoff::new();
        let mut spins = 0;
        let mut mine = identity();
        loop {
            let word = self.0.load(Ordering::Relaxed);
            process::notice_fork();
            if word == 0 || is_orphaned(word) {
                mine = identity() | (mine & WAITERS);
                if self
                    .0
                    .compare_exchange(word, mine, order!(K1, Acquire), Ordering::Relaxed)
                    .is_ok()
                {
                    return self.entered(rank, word != 0);
                }
            } else if spins < SPINS {
                spins += 1;
                backoff.spin();
            } else if word & WAITERS != 0
                || self
                    .0
                    .compare_exchange(word, word | WAITERS, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
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
            ranks.store(
                ranks.load(Ordering::Relaxed) & !(1 << (self.rank as u8)),
                Ordering::Relaxed,
            );
        }
        let word = self.word.swap(0, order!(K2, Release));
        if word & WAITERS != 0 {
            wake_one(self.word);
        }
    }
}

/// What this thread writes into a lock it takes.
fn identity() -> u64 {
    let child = if process::is_vfork_child() { VFORK_CHILD } else { 0 };
    u64::from(process::generation()) << GENERATION_SHIFT
        | (thread_pointer() as u64 & OWNER_MASK)
        | child
}

/// True when the holder is gone: it did not live through a fork, or was a vfork child that was killed.
fn is_orphaned(word: u64) -> bool {
    let owner = word & OWNER_MASK;
    if word & VFORK_CHILD != 0 {
        // The thread that called vfork runs again only when its child is gone; and a thread's next
        // child comes after the one before.
        return process::vforks() == 0 || owner == thread_pointer() as u64 & OWNER_MASK;
    }
    let generation = word >> GENERATION_SHIFT;
    generation != u64::from(process::generation())
        && !process::survived(owner as usize, generation as u32)
}

#[cfg(all(loom, test))]
mod loom_models {
    use super::{Lock, Rank, identity};
    use crate::base::sync::AtomicU64;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use crate::sys::stand_in;
    use loom::sync::Arc;
    use loom::thread;

    /// The generation of the process after the fork.
    const CHILD: u32 = 1;

    /// A lock, what it guards, and how often a thread took it from a dead one.
    #[derive(Default)]
    struct Guarded {
        steps: Steps,
        lock: Lock,
        data: Plain,
        orphans: Plain,
    }

    impl Guarded {
        /// In a child of fork, held by thread `owner` of the parent.
        fn held_by(owner: usize) -> Arc<Self> {
            stand_in::be(owner, CHILD - 1);
            let word = identity();
            stand_in::be(1, CHILD);
            Arc::new(Self { lock: Lock(AtomicU64::new(word)), ..Self::default() })
        }

        fn enter(&self) {
            self.steps.pass();
            let held = self.lock.enter(Rank::Flip);
            self.data.count();
            if held.orphaned() {
                self.orphans.count();
            }
        }

        fn try_enter(&self) {
            self.steps.pass();
            let Some(held) = self.lock.try_enter(Rank::Flip) else { return };
            self.data.count();
            if held.orphaned() {
                self.orphans.count();
            }
            drop(held);
            self.steps.pass();
        }

        /// Threads 2 and 3 act while this one, number 1, does `beside`.
        fn share(guarded: &Arc<Self>, act: fn(&Self), beside: fn(&Self)) {
            let threads = [2, 3].map(|number| {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    stand_in::be(number, CHILD);
                    act(&guarded);
                })
            });
            beside(guarded);
            for thread in threads {
                thread.join().expect("a thread ends");
            }
        }

        fn counts(&self) -> (usize, usize) {
            (self.data.get(), self.orphans.get())
        }
    }

    fn three_enter() {
        let guarded = Arc::new(Guarded::default());
        Guarded::share(&guarded, Guarded::enter, Guarded::enter);
        assert_eq!(guarded.counts(), (3, 0));
    }

    fn two_try() {
        let guarded = Arc::new(Guarded::default());
        Guarded::share(&guarded, Guarded::try_enter, |_| ());
        assert_eq!(guarded.orphans.get(), 0);
    }

    fn a_dead_owner_is_followed() {
        let guarded = Guarded::held_by(9);
        Guarded::share(&guarded, Guarded::enter, |_| ());
        assert_eq!(guarded.counts(), (2, 1));
    }

    fn a_dead_owner_is_followed_by_who_tries() {
        let guarded = Guarded::held_by(9);
        Guarded::share(&guarded, Guarded::try_enter, |_| ());
        assert_eq!(guarded.orphans.get(), 1);
    }

    /// The thread that forked returns from its handler into what it had locked.
    fn the_survivor_keeps_its_lock() {
        let guarded = Guarded::held_by(1);
        Guarded::share(&guarded, Guarded::enter, |guarded| {
            guarded.data.count();
            drop(guarded.lock.entered(Rank::Flip, false));
        });
        assert_eq!(guarded.counts(), (3, 0));
    }

    #[test]
    fn one_thread_at_a_time_and_no_sleeper_is_forgotten() {
        explore(three_enter);
        explore(two_try);
    }

    #[test]
    fn a_lock_left_behind_is_taken_over_once() {
        explore(a_dead_owner_is_followed);
        explore(a_dead_owner_is_followed_by_who_tries);
        explore(the_survivor_keeps_its_lock);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        for tag in ["K1", "K2"] {
            assert!(is_caught(tag, three_enter));
            assert!(is_caught(tag, two_try));
            assert!(is_caught(tag, a_dead_owner_is_followed));
            assert!(is_caught(tag, a_dead_owner_is_followed_by_who_tries));
        }
    }
}
