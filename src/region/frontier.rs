//! The words of a slice that are read or moved without its lock.
//!
//! ```text
//!  63                                 32 31                                  0
//! +-------------------------------------+-------------------------------------+
//! |  end: number past the last compound |  frontier: number past the highest  |
//! |  that may be handed out             |  compound ever handed out           |
//! +-------------------------------------+-------------------------------------+
//! ```
//! Compounds below the *frontier* have been used before.  It moves by compare-exchange alone, so that
//! a signal handler that interrupted the holder of the slice's lock can still get a compound.  The end is
//! in the same word, so that a cut (see [`super::extent`]) never passes a compound that is handed out
//! meanwhile.  The end falls with a cut and rises once more is mapped, both under the lock.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | S1 word compare-exchange that hands out | Acquire | S6 | what is handed out is mapped |
//! | S2 committed fetch-max | Release | S3 | the memory is writable before others see it so |
//! | S3 committed load | Acquire | S2 | |
//! | S4 `opened` store | Release | S5 | the node's records are ready |
//! | S5 `opened` load | Acquire | S4 | |
//! | S6 word compare-exchange that raises the end | Release | S1 | mapped before others may be handed it; what follows in the word are read-modify-writes, which carry it on |
//! | S7 committed fetch-min, at a cut | Relaxed | | numbers only: what was handed out stays below |

use crate::base::sync::{AtomicU32, AtomicU64, Ordering, order};

/// How far a slice's compounds are handed out, and how far they are writable.
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(super) struct Frontier {
    word: AtomicU64,
    committed: AtomicU32,
    /// 1 when the node's memory may be used.
    opened: AtomicU32,
}

impl Frontier {
    /// A frontier that waits for [`Frontier::place`].
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self { word: AtomicU64::new(0), committed: AtomicU32::new(0), opened: AtomicU32::new(0) }
    }

    /// Starts at compound `first`, with `end` past the last one, before anyone else knows of the slice.
    pub(super) fn place(&self, first: u32, end: u32) {
        self.word.store(pack(first, end), Ordering::Relaxed);
        self.committed.store(first, Ordering::Relaxed);
    }

    /// Number past the highest compound ever handed out.
    pub(super) fn get(&self) -> u32 {
        unpack(self.word.load(Ordering::Relaxed)).0
    }

    /// Number past the last compound that may be handed out.
    pub(super) fn end(&self) -> u32 {
        unpack(self.word.load(Ordering::Relaxed)).1
    }

    /// Hands out `count` compounds: where the frontier was, and the first number.  `aligned` rounds a
    /// number up to one whose compound may come first.
    pub(super) fn advance(&self, count: u32, aligned: impl Fn(u32) -> u32) -> Option<(u32, u32)> {
        let mut first = 0;
        let moved = self.change(order!(S1, Acquire), |from, end| {
            first = aligned(from);
            let next = first.checked_add(count).filter(|&next| next <= end)?;
            Some((next, end))
        });
        moved.map(|(from, _)| (from, first))
    }

    /// Hands out the compounds from the frontier `from` to `next`, if it still is there.
    pub(super) fn extend(&self, from: u32, next: u32) -> bool {
        let to = |now, end| (now == from && next <= end).then_some((next, end));
        self.change(order!(S1, Acquire), to).is_some()
    }

    /// Lets at most `keep` more compounds be handed out; where the end was, and where it is.
    pub(super) fn cut(&self, keep: u32) -> (u32, u32) {
        let mut after = 0;
        let before = self.change(Ordering::Relaxed, |next, end| {
            after = next.saturating_add(keep).min(end);
            Some((next, after))
        });
        // S7: what was writable past the end is unmapped, and is not when it is mapped again.
        self.committed.fetch_min(after, Ordering::Relaxed);
        before.map_or((after, after), |(_, end)| (end, after))
    }

    /// Lets the compounds below `end`, which are mapped by now, be handed out.
    pub(super) fn grow(&self, end: u32) {
        self.change(order!(S6, Release), |next, old| Some((next, end.max(old))));
    }

    /// Changes frontier and end together, unless `to` says none; what they were.
    fn change(
        &self,
        order: Ordering,
        mut to: impl FnMut(u32, u32) -> Option<(u32, u32)>,
    ) -> Option<(u32, u32)> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, end) = unpack(word);
            let (to_next, to_end) = to(next, end)?;
            let new = pack(to_next, to_end);
            match self.word.compare_exchange(word, new, order, Ordering::Relaxed) {
                Ok(_) => return Some((next, end)),
                Err(now) => word = now,
            }
        }
    }

    /// Number past the highest compound that is writable.
    pub(super) fn committed(&self) -> u32 {
        self.committed.load(order!(S3, Acquire))
    }

    /// Notes that all compounds below `end` are writable.
    pub(super) fn note_committed(&self, end: u32) {
        self.committed.fetch_max(end, order!(S2, Release));
    }

    /// True once [`Frontier::open`] was called.
    pub(super) fn is_open(&self) -> bool {
        self.opened.load(order!(S5, Acquire)) != 0
    }

    /// Notes that the node's memory may be used.
    pub(super) fn open(&self) {
        self.opened.store(1, order!(S4, Release));
    }
}

fn pack(next: u32, end: u32) -> u64 {
    u64::from(end) << 32 | u64::from(next)
}

#[expect(clippy::cast_possible_truncation, reason = "two halves of a word")]
const fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(all(loom, test))]
mod loom_models {
    use super::Frontier;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use crate::base::sync::{AtomicU32, Ordering};
    use loom::sync::Arc;
    use loom::thread;

    /// A slice of four compounds, committed two at a time.
    #[derive(Default)]
    struct Slice {
        steps: Steps,
        frontier: Frontier,
        /// 1 where the system lets one write; commits are idempotent, so these are no plain data.
        writable: [AtomicU32; 4],
        /// 1 where a cut has unmapped one.
        gone: [AtomicU32; 4],
        users: [Plain; 4],
        record: Plain,
    }

    impl Slice {
        fn of_four() -> Arc<Self> {
            let slice = Self::default();
            slice.frontier.place(0, 4);
            Arc::new(slice)
        }

        fn cut(&self, keep: u32) {
            let (before, after) = self.frontier.cut(keep);
            for number in after..before {
                self.gone[number as usize].store(1, Ordering::Relaxed);
                assert_eq!(self.users[number as usize].get(), 0, "unmapped under its user");
            }
        }

        /// Maps the compounds below `end` that are not.
        fn grow(&self, end: u32) {
            for number in self.frontier.end()..end {
                self.writable[number as usize].store(0, Ordering::Relaxed);
                self.gone[number as usize].store(0, Ordering::Relaxed);
            }
            self.frontier.grow(end);
        }

        fn commit(&self, end: u32) {
            self.commit_upto(end, end.next_multiple_of(2));
        }

        fn commit_upto(&self, end: u32, upto: u32) {
            let done = self.frontier.committed();
            if end > done {
                for number in done..upto {
                    self.writable[number as usize].store(1, Ordering::Relaxed);
                }
                self.frontier.note_committed(upto);
            }
        }

        fn take(&self, count: u32) {
            self.take_and(count, Self::commit);
        }

        /// As a signal handler does, without the lock.
        fn take_fresh(&self, count: u32) {
            self.take_and(count, |slice, end| slice.commit_upto(end, end));
        }

        fn take_and(&self, count: u32, commit: impl Fn(&Self, u32)) {
            self.steps.pass();
            let Some((_, first)) = self.frontier.advance(count, |from| from) else { return };
            commit(self, first + count);
            self.steps.pass();
            for number in first as usize..(first + count) as usize {
                assert_eq!(
                    self.writable[number].load(Ordering::Relaxed),
                    1,
                    "written before it is writable"
                );
                let gone = self.gone[number].load(Ordering::Relaxed);
                assert_eq!(gone, 0, "handed out beyond the cut");
                self.users[number].count();
            }
        }
    }

    fn two_take_compounds() {
        let slice = Slice::of_four();
        let other = slice.clone();
        let taker = thread::spawn(move || other.take(1));
        slice.take(1);
        slice.take(1);
        taker.join().expect("the other user ends");
        assert_eq!(slice.frontier.get(), 3);
        assert!(slice.users.iter().take(3).all(|user| user.get() == 1), "handed out twice");
    }

    fn one_cuts_and_one_takes() {
        let slice = Slice::of_four();
        let other = slice.clone();
        let taker = thread::spawn(move || {
            other.take(1);
            other.take(2);
        });
        slice.cut(1);
        slice.cut(0);
        taker.join().expect("the other user ends");
    }

    fn one_grows_and_one_takes() {
        let slice = Slice::of_four();
        // The second compound is writable, and given up.
        slice.take(1);
        slice.cut(0);
        let other = slice.clone();
        let taker = thread::spawn(move || {
            other.take_fresh(1);
            other.take_fresh(1);
        });
        slice.grow(2);
        slice.grow(3);
        slice.cut(0);
        slice.grow(4);
        taker.join().expect("the other user ends");
    }

    fn one_opens_a_node() {
        let slice = Arc::new(Slice::default());
        let other = slice.clone();
        let opener = thread::spawn(move || {
            other.record.count();
            other.frontier.open();
            other.steps.pass();
        });
        slice.steps.pass();
        if slice.frontier.is_open() {
            assert_eq!(slice.record.get(), 1);
        }
        opener.join().expect("the other user ends");
    }

    #[test]
    fn a_compound_is_handed_out_once_and_writable() {
        explore(two_take_compounds);
        explore(one_cuts_and_one_takes);
        explore(one_grows_and_one_takes);
        explore(one_opens_a_node);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("S1", one_grows_and_one_takes));
        assert!(is_caught("S2", two_take_compounds));
        assert!(is_caught("S3", two_take_compounds));
        assert!(is_caught("S4", one_opens_a_node));
        assert!(is_caught("S5", one_opens_a_node));
        assert!(is_caught("S6", one_grows_and_one_takes));
    }
}
