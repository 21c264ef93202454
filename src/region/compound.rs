//! The head of a compound page: one record per 2 MiB, always.
//!
//! ```text
//! byte 0   refcount    32  runs handed out, plus pins
//! byte 4   state       16  low byte: see State.  To come: bit 8, some run is sampled or guarded;
//!                          bit 9, some run is pinned; bit 10, was ever pinned (read before it is set)
//! byte 6   owner       16  heap that the compound belongs to; 0 is the process's own
//! byte 8   run map     64  bit r: run r is handed out
//! byte 16  starts      64  bit r: a span starts at run r
//! byte 24  backed      64  bit r: run r may be touched; all ones while commits go by compounds
//! byte 32  special     64  bit r: run r is sampled, guarded or pinned: its class byte is 0, and its
//!                          span's record says which; of a large block's first compound, 1 where its
//!                          pages are spread over nodes
//! byte 40  large       64  bytes of a large block (first compound); offset of its first (others)
//! byte 48  next, prev  32+32  list of the page heap, by compound number; 0 is none
//! byte 56  group       32  number of the 1 GiB group whose count this compound joins, plus 1; 0 is none
//! byte 60  bucket      32  list that the compound is on, plus 1; 0 is none
//! ```
//!
//! **Run map and refcount.**  To hand runs out, first raise the refcount unless it is zero, then
//! claim bits; to take them back, first clear bits, then lower the refcount.  So the count is never
//! below the number of set bits, and who lowers it to zero is alone with an empty compound and
//! retires it.  n runs of one compound move both by one read-modify-write each.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | C1 refcount raise (compare-exchange) | Relaxed | | a count is no data: C2 brings the runs, and the raise carries the releases before it on to C5 |
//! | C2 run map claim (compare-exchange) | Acquire | C3 | sees the runs as their last user left them |
//! | C3 run map clear (fetch-and) | Release | C2 | the last user's writes come before the reuse |
//! | C4 refcount lower (fetch-sub) | Release | C5 | what a user wrote comes before the end of the compound |
//! | C5 fence after the count fell to zero | Acquire | C4 | who retires sees what all others wrote |
//! | C6 `starts` set (fetch-or) | Release | C7 | the span's record is written |
//! | C7 `starts` load | Acquire | C6 | |
//!
//! The state needs no order: who frees a block got it from who took it.

use crate::base::bits;
use crate::base::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering, barrier, order};

/// What a compound is used for.
///
/// | state | owner of the head | list | legal calls |
/// |---|---|---|---|
/// | Unused | the slice | its free map, or past the frontier | take |
/// | Runs | the page heap | a bucket while a run is free | claim, give back |
/// | LargeFirst, LargeRest | the block's user | none | free, grow, shrink |
/// | Parked, LargeRest | a CPU's slot | none | take out |
/// | Emergency | signal handlers | none | free |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(crate) enum State {
    /// Free, or never used.
    Unused = 0,
    /// Cut into runs.
    Runs = 1,
    /// First compound of a large block.
    LargeFirst = 2,
    /// A later compound of a large block.
    LargeRest = 3,
    /// Blocks that signal handlers took while their thread was in a slow path.
    Emergency = 4,
    /// First compound of a large block that was freed and waits in a slot.
    Parked = 5,
}

/// A compound's head.  Zero bytes are an unused one.
#[repr(C, align(64))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Head {
    refcount: AtomicU32,
    state: AtomicU16,
    owner: AtomicU16,
    run_map: AtomicU64,
    starts: AtomicU64,
    backed: AtomicU64,
    special: AtomicU64,
    /// Bytes of a large block in its first compound, compounds back to that first in the others.
    pub(crate) large: AtomicU64,
    /// Next on the list; 0 is none.
    pub(crate) next: AtomicU32,
    /// Previous on the list; 0 is none.
    pub(crate) prev: AtomicU32,
    group: AtomicU32,
    /// List that the compound is on, plus 1; 0 is none.
    pub(crate) bucket: AtomicU32,
}

/// What became of a compound when runs came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// Others still use it.
    InUse,
    /// Nobody does: the caller retires it.
    Empty,
}

impl Head {
    /// True where the pages of the large block that starts here are spread over nodes.
    #[cfg(not(loom))]
    pub(crate) fn is_spread(&self) -> bool {
        self.special.load(Ordering::Relaxed) != 0
    }

    /// Notes whether the pages of the large block that starts here are spread over nodes.
    #[cfg(not(loom))]
    pub(crate) fn note_spread(&self, is_spread: bool) {
        self.special.store(is_spread.into(), Ordering::Relaxed);
    }

    /// The state.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Relaxed) {
            1 => State::Runs,
            2 => State::LargeFirst,
            3 => State::LargeRest,
            4 => State::Emergency,
            5 => State::Parked,
            _ => State::Unused,
        }
    }

    /// Moves from one state to another; the compound is the caller's alone.
    pub(crate) fn transit(&self, from: State, to: State) {
        debug_assert_eq!(self.state(), from);
        self.state.store(to as u16, Ordering::Relaxed);
    }

    /// Moves from one state to another unless another thread did so first: false.
    pub(crate) fn try_transit(&self, from: State, to: State) -> bool {
        self.state
            .compare_exchange(from as u16, to as u16, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Starts a compound cut into runs, with the first `count` runs handed out.
    pub(crate) fn begin_runs(&self, count: u32) {
        debug_assert_eq!(self.run_map.load(Ordering::Relaxed), 0);
        self.starts.store(0, Ordering::Relaxed);
        self.backed.store(u64::MAX, Ordering::Relaxed);
        self.run_map.store(bits::range(0, count), Ordering::Relaxed);
        self.refcount.store(count, Ordering::Relaxed);
        self.transit(State::Unused, State::Runs);
    }

    /// Hands out `count` adjacent runs: the number of the first.  `Err(Left::Empty)`: there were
    /// none, and meanwhile the last of the others left: the caller retires the compound.
    pub(crate) fn claim_runs(&self, count: u32) -> Result<u32, Left> {
        if !self.raise(count) {
            return Err(Left::InUse);
        }
        let mut map = self.run_map.load(Ordering::Relaxed);
        while let Some(first) = bits::find_zeros(map, count) {
            let mask = bits::range(first, count);
            match self.run_map.compare_exchange(
                map,
                map | mask,
                order!(C2, Acquire),
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(first),
                Err(now) => map = now,
            }
        }
        Err(self.lower(count))
    }

    /// Takes back the runs of `mask`, all handed out, where no span starts any more.
    pub(crate) fn give_back_runs(&self, mask: u64) -> Left {
        self.run_map.fetch_and(!mask, order!(C3, Release));
        self.lower(mask.count_ones())
    }

    /// Raises the refcount unless it is zero.
    pub(crate) fn raise(&self, count: u32) -> bool {
        let mut now = self.refcount.load(Ordering::Relaxed);
        while now != 0 {
            // C1
            match self.refcount.compare_exchange(
                now,
                now + count,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Lowers the refcount.
    pub(crate) fn lower(&self, count: u32) -> Left {
        let before = self.refcount.fetch_sub(count, order!(C4, Release));
        debug_assert!(before >= count, "a refcount below zero");
        if before == count {
            barrier!(C5, Acquire);
            Left::Empty
        } else {
            Left::InUse
        }
    }

    /// Sets the refcount of a compound that is the caller's alone.
    pub(crate) fn begin_count(&self, count: u32) {
        self.refcount.store(count, Ordering::Relaxed);
    }

    /// Runs out plus pins.
    pub(crate) fn refcount(&self) -> u32 {
        self.refcount.load(Ordering::Relaxed)
    }

    /// Bit r: run r is handed out.
    pub(crate) fn run_map(&self) -> u64 {
        self.run_map.load(Ordering::Relaxed)
    }

    /// Bit r: a span starts at run r.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.load(order!(C7, Acquire))
    }

    /// Notes that a span starts at `run`; its record is written.
    pub(crate) fn start_span(&self, run: u32) {
        self.starts.fetch_or(1 << run, order!(C6, Release));
    }

    /// Notes that no span starts at `run` any more.
    pub(crate) fn end_span(&self, run: u32) {
        self.starts.fetch_and(!(1 << run), Ordering::Relaxed);
    }

    /// After a fork: the runs in flight of threads that are gone are lost, so the count is that of
    /// the run map again.  Returns false when the compound turned out empty.
    pub(crate) fn recount(&self) -> bool {
        let count = self.run_map.load(Ordering::Relaxed).count_ones();
        self.refcount.store(count, Ordering::Relaxed);
        count != 0
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Head>() == 64);

#[cfg(all(loom, test))]
mod loom_models {
    use super::{Head, Left};
    use crate::base::bits;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use loom::sync::Arc;
    use loom::thread;

    /// A compound, and data that its users write without atomics: one word a run.
    struct Compound {
        steps: Steps,
        head: Head,
        runs: [Plain; 2],
        retired: Plain,
    }

    impl Compound {
        /// With the first `count` runs handed out.
        fn with(count: u32) -> Arc<Self> {
            let head = Head::default();
            head.begin_runs(count);
            Arc::new(Self {
                head,
                steps: Steps::default(),
                runs: Default::default(),
                retired: Plain::default(),
            })
        }

        fn use_run(&self, run: u32) {
            self.runs[run as usize].count();
            self.steps.pass();
        }

        /// What the last user does: it is alone.
        fn end(&self, left: Left) {
            if left == Left::Empty {
                assert_eq!(self.head.run_map(), 0);
                self.retired.count();
                self.use_run(0);
                self.use_run(1);
            }
        }

        fn ends_retired_once(&self) {
            assert_eq!(self.head.refcount(), 0);
            assert_eq!(self.retired.get(), 1);
        }
    }

    fn two_users_leave() {
        let compound = Compound::with(2);
        let other = compound.clone();
        let left = thread::spawn(move || {
            other.use_run(1);
            other.end(other.head.give_back_runs(0b10));
        });
        compound.use_run(0);
        compound.end(compound.head.give_back_runs(0b01));
        left.join().expect("the other user ends");
        compound.ends_retired_once();
    }

    /// One user leaves while another comes: it gets the run that is left, or none.
    fn a_run_is_claimed_again() {
        let compound = Compound::with(64);
        let other = compound.clone();
        let left = thread::spawn(move || {
            other.use_run(0);
            other.end(other.head.give_back_runs(1));
        });
        if let Ok(run) = compound.head.claim_runs(1) {
            compound.use_run(run);
        }
        left.join().expect("the other user ends");
    }

    /// The last user leaves while two come for more than there is, or for the one run that is left.
    fn the_last_one_retires() {
        let compound = Compound::with(1);
        let come = |count: u32| {
            let other = compound.clone();
            thread::spawn(move || match other.head.claim_runs(count) {
                Ok(run) => {
                    other.use_run(run);
                    other.end(other.head.give_back_runs(bits::range(run, count)));
                }
                Err(left) => other.end(left),
            })
        };
        let threads = [come(64), come(1)];
        compound.use_run(0);
        compound.end(compound.head.give_back_runs(1));
        for thread in threads {
            thread.join().expect("a user ends");
        }
        compound.ends_retired_once();
    }

    fn a_span_is_found_with_its_record() {
        let compound = Compound::with(1);
        let other = compound.clone();
        let left = thread::spawn(move || {
            other.use_run(0);
            other.head.start_span(0);
        });
        if compound.head.starts() & 1 != 0 {
            assert_eq!(compound.runs[0].get(), 1);
        }
        left.join().expect("the other user ends");
    }

    #[test]
    fn users_of_a_compound_never_meet_and_the_last_one_retires_it() {
        explore(two_users_leave);
        explore(a_run_is_claimed_again);
        explore(the_last_one_retires);
        explore(a_span_is_found_with_its_record);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("C2", a_run_is_claimed_again));
        assert!(is_caught("C3", a_run_is_claimed_again));
        assert!(is_caught("C4", two_users_leave));
        assert!(is_caught("C5", two_users_leave));
        assert!(is_caught("C6", a_span_is_found_with_its_record));
        assert!(is_caught("C7", a_span_is_found_with_its_record));
    }
}
