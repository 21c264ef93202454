//! Runs: adjacent 32 KiB units of one compound.
//!
//! A compound with free runs stands on the list of its number of free runs, so the fullest that can
//! serve a request is found first and the others empty.
#![allow(unsafe_code, reason = "the node's record stands in its slice's metadata")]

use crate::base::bits;
use crate::base::config::{PAGEHEAP_RECORD_BYTES, RUN_BYTES, RUNS_PER_COMPOUND};
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::region::{self, Exhausted, Head, Left, Slice, State};
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::mem;

/// Compounds of one list that are looked at before the next list.
const TRIES: u32 = 8;
/// Lists: by free runs, 0 unused.
const BUCKETS: usize = RUNS_PER_COMPOUND;

/// A node's compounds with free runs.  Zero bytes are an empty one.
#[repr(C, align(64))]
#[derive(Debug)]
struct PageHeap {
    lock: Lock,
    /// Bit b: list b is not empty.
    filled: AtomicU64,
    /// First compound of each list; 0 is none.
    firsts: [AtomicU32; BUCKETS],
}

/// Runs of one compound that come home together: one change of its head for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunsBack {
    /// The compound.
    pub(crate) compound: CompoundId,
    /// Bit r: run r comes back.
    pub(crate) mask: u64,
}

fn page_heap(slice: &'static Slice) -> &'static PageHeap {
    // SAFETY: an open slice's node record starts with the page heap's, zeroed at first.
    unsafe { mem::record(slice.node_record()) }
}

/// Hands out `count` adjacent runs of node `node`; the number of the first in its slice.
pub(crate) fn take_runs(node: NodeIndex, count: u32) -> Result<usize, Exhausted> {
    let slice = region::slice(node);
    slice.open()?;
    let heap = page_heap(slice);
    let _held = heap.enter(slice);
    if let Some(run) = heap.take_listed(slice, count) {
        return Ok(run);
    }
    let id = slice.take(1, 1)?.first;
    slice.prefer_huge(id);
    slice.head(id).begin_runs(count);
    heap.relist(slice, id);
    Ok(run_number(id, 0))
}

/// Takes runs of one compound back; retires the compound when it was the last use.
pub(crate) fn give_runs(node: NodeIndex, back: RunsBack) {
    let slice = region::slice(node);
    let heap = page_heap(slice);
    let held = heap.enter(slice);
    let left = slice.head(back.compound).give_back_runs(back.mask);
    if left == Left::InUse {
        heap.relist(slice, back.compound);
        return;
    }
    heap.unlist(slice, back.compound);
    // Under the lock: a child forked from here on finds no compound that is cut and empty.
    slice.head(back.compound).transit(State::Runs, State::Unused);
    drop(held);
    slice.put(back.compound, 1);
}

/// Gives the pages of free runs back to the system, in compounds that are in use: when a program asks for it, since
/// a huge page is split by this.
pub(crate) fn purge_runs(slice: &'static Slice) {
    // Under the lock: nobody hands runs out meanwhile.
    let _held = page_heap(slice).enter(slice);
    for (id, head) in compounds(slice).filter(|(_, head)| head.state() == State::Runs) {
        let mut free = !head.run_map();
        while free != 0 {
            let first = free.trailing_zeros();
            let count = (free >> first).trailing_ones();
            free &= !bits::range(first, count);
            let start = slice.run_address(run_number(id, first));
            slice.empty_pages(start, start + count as usize * RUN_BYTES);
        }
    }
}

fn run_number(id: CompoundId, run: u32) -> usize {
    id.0 as usize * RUNS_PER_COMPOUND + run as usize
}

impl PageHeap {
    fn enter(&'static self, slice: &Slice) -> Held<'static> {
        let held = self.lock.enter(Rank::PageHeap);
        if held.orphaned() {
            self.rebuild(slice);
        }
        held
    }

    fn take_listed(&self, slice: &Slice, count: u32) -> Option<usize> {
        let mut candidates =
            self.filled.load(Ordering::Relaxed) & u64::MAX.checked_shl(count).unwrap_or(0);
        while candidates != 0 {
            let bucket = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let mut next = self.firsts[bucket].load(Ordering::Relaxed);
            for _ in 0..TRIES {
                if next == 0 {
                    break;
                }
                let id = CompoundId(next);
                let head = slice.head(id);
                next = head.next.load(Ordering::Relaxed);
                match head.claim_runs(count) {
                    Ok(first) => {
                        self.relist(slice, id);
                        return Some(run_number(id, first));
                    }
                    Err(Left::Empty) => {
                        self.unlist(slice, id);
                        slice.put(id, 1);
                    }
                    Err(Left::InUse) => {}
                }
            }
        }
        None
    }

    /// Puts a compound on the list of its number of free runs, or on none when it has none.
    fn relist(&self, slice: &Slice, id: CompoundId) {
        let head = slice.head(id);
        let bucket = head.run_map().count_zeros();
        if head.bucket.load(Ordering::Relaxed) == bucket + 1 {
            return;
        }
        self.unlist(slice, id);
        if bucket > 0 && (bucket as usize) < BUCKETS {
            self.link(slice, id, bucket);
        }
    }

    fn link(&self, slice: &Slice, id: CompoundId, bucket: u32) {
        let head = slice.head(id);
        let first = &self.firsts[bucket as usize];
        let old = first.load(Ordering::Relaxed);
        head.next.store(old, Ordering::Relaxed);
        head.prev.store(0, Ordering::Relaxed);
        head.bucket.store(bucket + 1, Ordering::Relaxed);
        if old != 0 {
            slice.head(CompoundId(old)).prev.store(id.0, Ordering::Relaxed);
        }
        first.store(id.0, Ordering::Relaxed);
        self.filled.fetch_or(1 << bucket, Ordering::Relaxed);
    }

    fn unlist(&self, slice: &Slice, id: CompoundId) {
        let head = slice.head(id);
        let listed = head.bucket.swap(0, Ordering::Relaxed);
        let Some(bucket) = listed.checked_sub(1) else { return };
        let next = head.next.load(Ordering::Relaxed);
        let prev = head.prev.load(Ordering::Relaxed);
        if next != 0 {
            slice.head(CompoundId(next)).prev.store(prev, Ordering::Relaxed);
        }
        if prev != 0 {
            slice.head(CompoundId(prev)).next.store(next, Ordering::Relaxed);
            return;
        }
        self.firsts[bucket as usize].store(next, Ordering::Relaxed);
        if next == 0 {
            self.filled.fetch_and(!(1 << bucket), Ordering::Relaxed);
        }
    }

    /// After a fork: lists and counts follow from the run maps.
    fn rebuild(&self, slice: &Slice) {
        for first in &self.firsts {
            first.store(0, Ordering::Relaxed);
        }
        self.filled.store(0, Ordering::Relaxed);
        for (id, head) in compounds(slice) {
            if head.state() != State::Runs {
                continue;
            }
            head.bucket.store(0, Ordering::Relaxed);
            if head.recount() {
                self.relist(slice, id);
            } else {
                // It emptied in the hand of a thread that is gone.
                slice.put(id, 1);
            }
        }
    }
}

/// The compounds of a slice that were ever handed out.
pub(super) fn compounds(slice: &Slice) -> impl Iterator<Item = (CompoundId, &'static Head)> {
    let numbers = region::geometry().first..slice.frontier();
    numbers.map(CompoundId).map(|id| (id, slice.head(id)))
}

/// Compounds cut into runs, and the runs handed out of them.
pub(crate) fn census(slice: &Slice) -> [u32; 2] {
    compounds(slice)
        .filter(|(_, head)| head.state() == State::Runs)
        .fold([0, 0], |[compounds, runs], (_, head)| {
            [compounds + 1, runs + head.run_map().count_ones()]
        })
}

/// Ranges of adjacent free runs, each in one compound: lengths in runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// How many.
    pub(crate) count: u32,
    /// The sum of their lengths.
    pub(crate) runs: u32,
    /// The length of the shortest; 0 where there is none.
    pub(crate) shortest: u32,
    /// The length of the longest.
    pub(crate) longest: u32,
}

impl Gaps {
    /// Adds those of a compound whose run map is `map`.
    fn add(&mut self, map: u64) {
        let mut free = !map;
        while free != 0 {
            let start = free.trailing_zeros();
            let length = (free >> start).trailing_ones();
            free &= !bits::range(start, length);
            self.shortest = if self.count == 0 { length } else { self.shortest.min(length) };
            self.longest = self.longest.max(length);
            self.count += 1;
            self.runs += length;
        }
    }
}

/// The free runs of compounds cut into runs.
pub(crate) fn gaps(slice: &Slice) -> Gaps {
    let mut gaps = Gaps::default();
    let cut = compounds(slice).filter(|(_, head)| head.state() == State::Runs);
    cut.for_each(|(_, head)| gaps.add(head.run_map()));
    gaps
}

/// The sum of all refcounts of compounds cut into runs: runs handed out, and pins.
pub(crate) fn refcounts(slice: &Slice) -> u64 {
    let cut = compounds(slice).filter(|(_, head)| head.state() == State::Runs);
    cut.map(|(_, head)| u64::from(head.refcount())).sum()
}

/// Checks a node's lists and heads against each other; the first compound that is wrong, if any.
/// The heap must be at rest.
pub(crate) fn rebuild_check(slice: &'static Slice) -> Result<(), CompoundId> {
    let heap = page_heap(slice);
    let _held = heap.enter(slice);
    for (id, head) in compounds(slice) {
        let map = head.run_map();
        let free = map.count_zeros();
        let listed = head.bucket.load(Ordering::Relaxed);
        let right = match head.state() {
            State::Runs => {
                head.refcount() == map.count_ones()
                    && head.starts() & !map == 0
                    && listed == if free == 0 { 0 } else { free + 1 }
            }
            _ => listed == 0,
        };
        if !right {
            return Err(id);
        }
    }
    Ok(())
}

const _: () = assert!(size_of::<PageHeap>() <= PAGEHEAP_RECORD_BYTES);
