//! A slice against a model of its compounds; and what the tests of the layers above start with.
#![allow(unsafe_code, reason = "words of compounds that a test holds")]

extern crate std;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::vec::Vec;

use super::extent::Extent;
use super::{Exhausted, Slice, geometry, seams, slice, start};
use crate::base::config::{
    COMPOUND_BYTES, FREE_RESIDENT_FRACTION, FREE_RESIDENT_HARD, FREE_RESIDENT_MIN, GROWTH_ROOM,
};
use crate::base::ids::{CompoundId, KernelNode, NodeIndex};
use crate::base::sync::{AtomicU64, Ordering};
use crate::sys::{fault, mem};
use crate::topo;

/// Nodes that tests have.
pub(crate) const NODES: u32 = 4;
/// Slices are small, so that they fill: 256 compounds, in four maps.
const SLICE_BYTES: usize = 512 << 20;

/// Starts the layers up to this one, once, with all slices open; they are the caller's alone while it keeps the
/// guard, and are left as empty as they were.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static STARTED: Once = Once::new();
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    STARTED.call_once(|| {
        topo::start(NODES, &mut []);
        assert!(start(SLICE_BYTES), "the system grants {NODES} slices of {SLICE_BYTES} bytes");
        for node in (0..NODES as usize).map(NodeIndex::new) {
            slice(node).open().expect("memory for metadata");
        }
    });
    guard
}

/// xorshift64.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`, which is above zero.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 16) % u64::from(end)).expect("below a u32")
    }

    /// An index of a collection of `len` elements, at least one.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(u32::try_from(len).expect("few")) as usize
    }
}

/// What a slice must say of itself.
struct Model {
    slice: &'static Slice,
    /// Count by first compound, of each block handed out.
    blocks: BTreeMap<u32, u32>,
    frontier: u32,
    random: Random,
}

impl Model {
    fn new(slice: &'static Slice, seed: u64) -> Self {
        Self {
            slice,
            blocks: BTreeMap::new(),
            frontier: slice.frontier(),
            random: Random::new(seed),
        }
    }

    fn is_free(&self, number: u32) -> bool {
        let before = self.blocks.range(..=number).next_back();
        number >= geometry().first && before.is_none_or(|(first, count)| first + count <= number)
    }

    fn are_free(&self, first: u32, count: u32) -> bool {
        first + count <= self.frontier && (first..first + count).all(|number| self.is_free(number))
    }

    /// True when the compound's address is a multiple of `align` compounds.
    fn is_aligned(&self, number: u32, align: u32) -> bool {
        (self.slice.base() / COMPOUND_BYTES + number as usize).is_multiple_of(align as usize)
    }

    /// Free ranges below the frontier: first number and length.
    fn free_ranges(&self) -> Vec<(u32, u32)> {
        let held = self.blocks.iter().map(|(first, count)| (*first, first + count));
        let mut at = geometry().first;
        let mut ranges = Vec::new();
        for (first, end) in held.chain([(self.frontier, self.frontier)]) {
            if first > at {
                ranges.push((at, first - at));
            }
            at = end;
        }
        ranges
    }

    /// Where the next block must come from: the shortest range that fits, the lowest of equals; or
    /// the frontier.
    fn expected(&self, count: u32, align: u32) -> Option<u32> {
        let aligned = |from: u32| (from..geometry().end).find(|&at| self.is_aligned(at, align));
        let ranges = self.free_ranges().into_iter();
        let fits = ranges.filter_map(|(start, length)| {
            let first = aligned(start)?;
            (first + count <= start + length).then_some((length, first))
        });
        let fresh = || aligned(self.frontier).filter(|first| first + count <= geometry().end);
        fits.min().map(|(_, first)| first).or_else(fresh)
    }

    fn take(&mut self) {
        let count = [1, 1, 1, 2, 3, 9][self.random.index(6)];
        let align = [1, 1, 1, 2, 4, 16][self.random.index(6)];
        let expected = self.expected(count, align);
        let taken = self.slice.take(count, align);
        assert_eq!(taken.map(|taken| taken.first.0).ok(), expected, "{count} at {align}");
        if let Ok(taken) = taken {
            self.hold(taken.first.0, count, taken.zeroed);
            self.frontier = self.frontier.max(taken.first.0 + count);
        }
    }

    fn hold(&mut self, first: u32, count: u32, zeroed: bool) {
        for number in first..first + count {
            for word in words(self.slice, number) {
                assert!(
                    !zeroed || word.load(Ordering::Relaxed) == 0,
                    "compound {number} is not zero"
                );
                word.store(u64::from(number), Ordering::Relaxed);
            }
        }
        self.blocks.insert(first, count);
    }

    fn random_block(&mut self) -> Option<(u32, u32)> {
        let at =
            if self.blocks.is_empty() { None } else { Some(self.random.index(self.blocks.len())) };
        at.and_then(|at| self.blocks.iter().nth(at)).map(|(first, count)| (*first, *count))
    }

    /// Puts a block back, or its tail.
    fn put(&mut self) {
        let Some((first, count)) = self.random_block() else { return };
        for number in first..first + count {
            assert!(
                words(self.slice, number)
                    .all(|word| word.load(Ordering::Relaxed) == u64::from(number))
            );
        }
        let kept = if self.random.below(2) == 0 { 0 } else { self.random.below(count) };
        self.slice.put(CompoundId(first + kept), count - kept);
        self.blocks.remove(&first);
        if kept > 0 {
            self.blocks.insert(first, kept);
        }
    }

    /// Makes a block longer in place.
    fn grow(&mut self) {
        let Some((first, count)) = self.random_block() else { return };
        let more = 1 + self.random.below(3);
        let at = first + count;
        let below = at.max(self.frontier.min(at + more)) - at;
        let expected = at + more <= geometry().end && (below == 0 || self.are_free(at, below));
        assert_eq!(self.slice.take_at(CompoundId(at), more), expected, "{more} at {at}");
        if expected {
            self.hold(at, more, false);
            self.blocks.remove(&at);
            self.blocks.insert(first, count + more);
            self.frontier = self.frontier.max(at + more);
        }
    }

    fn agrees(&self) {
        let held: u32 = self.blocks.values().sum();
        let used = self.frontier - geometry().first;
        let [ever, free, resident] = self.slice.census();
        assert_eq!([ever, free], [used, used - held]);
        assert!(
            resident <= free && resident <= FREE_RESIDENT_HARD,
            "{resident} resident of {free} free"
        );
    }

    fn purge(&self) {
        let [_, _, resident] = self.slice.census();
        assert_eq!(self.slice.purge(), resident);
        assert_eq!(self.slice.census()[2], 0);
    }

    fn finish(&mut self) {
        for (first, count) in core::mem::take(&mut self.blocks) {
            self.slice.put(CompoundId(first), count);
        }
        self.purge();
        self.agrees();
    }
}

/// Some words of a compound.
fn words(slice: &Slice, number: u32) -> impl Iterator<Item = &'static AtomicU64> {
    let start = slice.base() + CompoundId(number).offset();
    // SAFETY: the compound is handed out, so it is writable, and the test's own.
    [0, 5 << 12, COMPOUND_BYTES - 8].into_iter().map(move |at| unsafe { mem::record(start + at) })
}

#[test]
fn a_slice_hands_out_the_best_fit_and_loses_none() {
    let _alone = alone();
    let mut model = Model::new(slice(NodeIndex::new(0)), 1);
    for step in 0..8000 {
        // More is taken at times, more put back at others: the slice fills and empties.
        match (model.random.below(16), step / 1000 % 2) {
            (0, _) => model.grow(),
            (1, _) if step % 8 == 0 => model.purge(),
            (2..10, 0) | (2..6, _) => model.take(),
            _ => model.put(),
        }
        model.agrees();
    }
    model.finish();
}

#[test]
fn a_full_slice_is_exhausted_until_something_comes_back() {
    let _alone = alone();
    let slice = slice(NodeIndex::new(1));
    let mut taken = Vec::new();
    while let Ok(next) = slice.take(1, 1) {
        taken.push(next.first);
    }
    assert_eq!(taken.len(), (geometry().end - geometry().first) as usize);
    assert_eq!(slice.take(1, 1).map(|_| ()), Err(Exhausted));
    assert_eq!(slice.take_fresh(1), Err(Exhausted));
    let last = taken.pop().expect("a slice has compounds");
    slice.put(last, 1);
    assert_eq!(slice.take(1, 1).map(|taken| taken.first), Ok(last));
    taken.push(last);
    taken.into_iter().for_each(|id| slice.put(id, 1));
    slice.purge();
    assert_eq!(slice.census()[1..], [geometry().end - geometry().first, 0]);
}

#[test]
fn a_count_beyond_every_slice_is_refused() {
    let _alone = alone();
    for count in [geometry().end, u32::MAX / 2, u32::MAX - 1, u32::MAX] {
        for align in [1, 512, 1 << 31] {
            assert_eq!(
                slice(NodeIndex::new(2)).take(count, align).map(|_| ()),
                Err(Exhausted),
                "{count} at {align}"
            );
        }
    }
}

#[test]
fn threads_never_share_a_compound() {
    const THREADS: u64 = 4;
    let _alone = alone();
    let slice = slice(NodeIndex::new(3));
    let work = |seed| {
        let mut random = Random::new(seed);
        let mut held: Vec<(CompoundId, u32)> = Vec::new();
        for _ in 0..1500 {
            if held.len() < 12 && random.below(2) == 0 {
                let count = 1 + random.below(3);
                let Ok(taken) = slice.take(count, 1) else { continue };
                held.push((taken.first, count));
                for number in taken.first.0..taken.first.0 + count {
                    words(slice, number).for_each(|word| word.store(seed, Ordering::Relaxed));
                }
            } else if !held.is_empty() {
                let (first, count) = held.swap_remove(random.index(held.len()));
                for number in first.0..first.0 + count {
                    assert!(words(slice, number).all(|word| word.load(Ordering::Relaxed) == seed));
                }
                slice.put(first, count);
            }
        }
        held.into_iter().for_each(|(first, count)| slice.put(first, count));
    };
    thread::scope(|scope| (1..=THREADS).for_each(|seed| drop(scope.spawn(move || work(seed)))));
    slice.purge();
    let [used, free, resident] = slice.census();
    assert_eq!([free, resident], [used, 0]);
}

/// A slice of its own, beside those of the topology, whose nodes are invented.
fn spare(slice: &'static Slice) -> &'static Slice {
    let start = mem::reserve(0, SLICE_BYTES + COMPOUND_BYTES).expect("address space");
    let base = start.next_multiple_of(COMPOUND_BYTES);
    mem::allow_read(base, geometry().room_end).expect("readable metadata");
    slice.place(base, Extent::whole());
    slice
}

fn opened(slice: &'static Slice) -> &'static Slice {
    spare(slice).open().expect("memory for metadata");
    slice
}

/// How many calls were refused to open the slice on that node of the kernel; then it must work.
fn refusals_of_opening(slice: &Slice, node: u32) -> u32 {
    let refused = || fault::refusals().find_map(|(name, count)| (name == "mbind").then_some(count));
    let before = refused().expect("mbind is counted");
    slice.prefer(KernelNode(node), 0, SLICE_BYTES);
    assert_eq!(slice.open(), Ok(()));
    let first = slice.take(2, 1).expect("memory").first;
    for number in first.0..first.0 + 2 {
        for word in words(slice, number) {
            assert_eq!(word.swap(7, Ordering::Relaxed), 0);
        }
    }
    slice.put(first, 2);
    assert_eq!(slice.purge(), 2);
    refused().expect("mbind is counted") - before
}

/// True when the kernel prefers node 0 for the slice's memory; none where it does not tell.
fn is_on_node_zero(slice: &Slice) -> Option<bool> {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
    let base = std::format!("{:x} ", slice.base());
    let map = maps.lines().find_map(|line| line.strip_prefix(&base))?;
    let policy = map.split(' ').next()?;
    Some(policy.starts_with("prefer") && policy.ends_with(":0"))
}

#[test]
fn a_slice_opens_whether_or_not_its_node_can_be_preferred() {
    /// No machine has a node of that number.
    const ABSENT: u32 = 1023;
    static SLICES: [Slice; 3] = [const { Slice::new() }; 3];
    let _alone = alone();
    let [failed, absent, granted] = SLICES.each_ref().map(spare);
    assert!(fault::fail_after("mbind", 0, 1));
    assert_eq!(refusals_of_opening(failed, 0), 1);
    assert_ne!(is_on_node_zero(failed), Some(true));
    assert_eq!(refusals_of_opening(absent, ABSENT), 1);
    refusals_of_opening(granted, 0);
    // A sandbox, or qemu-user, may refuse this one, too, or was not asked any more.
    let elsewhere = mem::map(COMPOUND_BYTES).expect("address space");
    let grants = mem::prefer_node(elsewhere, COMPOUND_BYTES, 0).is_ok();
    assert_eq!(is_on_node_zero(granted).unwrap_or(grants), grants);
}

#[test]
fn beyond_the_cap_each_call_gives_one_compound_back() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = opened(&SLICE);
    let resident = || slice.census()[2];
    let [one, many] = [1, 40].map(|count| slice.take(count, 1).expect("memory").first);
    slice.put(many, 40);
    assert_eq!(resident(), 39);
    for left in (FREE_RESIDENT_MIN..39).rev() {
        assert!(slice.take(geometry().end, 1).is_err());
        assert_eq!(resident(), left);
    }
    assert!(slice.take(geometry().end, 1).is_err());
    assert_eq!(resident(), FREE_RESIDENT_MIN);
    slice.put(one, 1);
    slice.purge();
}

#[test]
fn more_is_kept_where_more_is_in_use() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = opened(&SLICE);
    let cap = 160 / FREE_RESIDENT_FRACTION;
    let [live, freed] = [160, 30].map(|count| slice.take(count, 1).expect("memory").first);
    slice.put(freed, 30);
    (0..30).for_each(|_| assert!(slice.take(geometry().end, 1).is_err()));
    assert_eq!(slice.census()[2], cap);
    slice.put(live, 160);
    slice.purge();
}

#[test]
fn a_huge_block_goes_at_once_but_for_what_is_bearable() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = opened(&SLICE);
    let block = slice.take(200, 1).expect("memory").first;
    for number in block.0..block.0 + 200 {
        words(slice, number).for_each(|word| word.store(1, Ordering::Relaxed));
    }
    slice.put(block, 200);
    assert_eq!(slice.census()[2], FREE_RESIDENT_HARD - 1);
    let again = slice.take(200, 1).expect("memory");
    assert_eq!((again.first, again.zeroed), (block, false));
    let last = block.0 + 199;
    assert!(words(slice, last).all(|word| word.load(Ordering::Relaxed) == 0));
    slice.put(block, 200);
    slice.purge();
}

#[test]
fn a_growing_block_has_room_that_others_take_last() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = opened(&SLICE);
    let growing = slice.take_growing(2, 1).expect("memory").first;
    let other = slice.take(1, 1).expect("memory").first;
    let room = 2 * GROWTH_ROOM;
    assert_eq!(other.0, growing.0 + 2 + room);
    assert!(slice.take_at(CompoundId(growing.0 + 2), 3));
    // Others get the rest of the slice first, and then the room.
    let mut last = other;
    while let Ok(taken) = slice.take(1, 1) {
        let is_room = (growing.0 + 5..other.0).contains(&taken.first.0);
        assert!(!is_room || last.0 + 1 == geometry().end || last.0 + 1 == taken.first.0);
        last = taken.first;
    }
    assert_eq!(last.0 + 1, other.0);
}

#[test]
fn the_room_of_a_block_that_is_gone_is_free() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = opened(&SLICE);
    let growing = slice.take_growing(2, 1).expect("memory").first;
    slice.put(growing, 2);
    assert_eq!(slice.take(2 + 2 * GROWTH_ROOM, 1).map(|taken| taken.first), Ok(growing));
}

/// What the words of a block say, and that they are as long as they were marked.
fn mark(slice: &Slice, first: CompoundId, count: u32, tag: u64) {
    for number in 0..count {
        let tag = tag + u64::from(number);
        words(slice, first.0 + number).for_each(|word| word.store(tag, Ordering::Relaxed));
    }
}

fn is_marked(slice: &Slice, first: CompoundId, count: u32, tag: u64) -> bool {
    (0..count).all(|number| {
        let tag = tag + u64::from(number);
        words(slice, first.0 + number).all(|word| word.load(Ordering::Relaxed) == tag)
    })
}

#[test]
fn pages_move_over_seams_or_are_copied() {
    static SLICE: Slice = Slice::new();
    let _alone = alone();
    let slice = opened(&SLICE);
    let [one, two, three] = [4, 8, 8].map(|count| slice.take(count, 1).expect("memory").first);
    let before = seams();
    mark(slice, one, 4, 100);
    assert!(slice.bring(one, two, 4 * COMPOUND_BYTES));
    assert!(is_marked(slice, two, 4, 100));
    assert!(is_marked(slice, one, 1, 0), "where pages came from, zeros are");
    // `two` is longer than what came to it: it has a seam within.
    mark(slice, two, 8, 200);
    assert!(slice.bring(two, three, 8 * COMPOUND_BYTES - 4096));
    assert!(is_marked(slice, three, 8, 200));
    assert_eq!(
        seams() - before,
        5,
        "before and after each of three pieces, and one between two of them"
    );
    mark(slice, three, 8, 300);
    assert!(fault::fail_after("mremap", 1, 1));
    assert!(!slice.bring(three, two, 8 * COMPOUND_BYTES));
    assert!(is_marked(slice, two, 8, 300));
}
