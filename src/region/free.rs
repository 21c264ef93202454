//! Which of a slice's compounds are free, and which of those keep their pages.  Under the slice's lock.
//!
//! ```text
//! byte 0   free    64  bit c: compound c is free
//! byte 8   dirty   64  bit c: free compound c may hold old bytes
//! byte 16  kept    64  bit c: free compound c is kept for the block before it to grow into
//! byte 24  seams   64  see [`super::moves`]: not under the lock
//! ```
//! A search goes through the maps, 64 compounds a step, and takes the shortest range that fits, the lowest
//! of equals, of the first [`RANGES_SEARCHED`] that it meets; and where none of them fits, of so many
//! others, where the rover has come to.  What is kept for a block to grow into serves others only
//! when there is nothing else.
#![allow(unsafe_code, reason = "the maps stand at a fixed offset of the slice")]

use super::geometry;
use super::geometry::MAP_BYTES;
use super::slice::Slice;
use crate::base::bits;
use crate::base::config::{
    COMPOUND_BYTES, FREE_RESIDENT_FRACTION, FREE_RESIDENT_HARD, FREE_RESIDENT_MIN, RANGES_SEARCHED,
};
use crate::base::ids::CompoundId;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::mem;

/// Free compounds of a slice that may keep their pages, and one more; 0: as many as what is in use allows.
static RESIDENT_MAX: AtomicU32 = AtomicU32::new(0);

/// Lets the free compounds of each node keep their pages up to `bytes`, whatever is in use.
pub(crate) fn keep_resident(bytes: usize) {
    let compounds = u32::try_from(bytes / COMPOUND_BYTES).unwrap_or(u32::MAX).min(u32::MAX - 1);
    RESIDENT_MAX.store(compounds + 1, Ordering::Relaxed);
}

/// The bits of 64 compounds.
#[repr(C, align(32))]
#[derive(Debug)]
pub(super) struct Map {
    /// Bit c: compound c is free.
    pub(super) free: AtomicU64,
    /// Bit c: free compound c may hold old bytes.
    pub(super) dirty: AtomicU64,
    /// Bit c: free compound c is kept for the block before it.
    pub(super) kept: AtomicU64,
    /// Bit c: pages that were moved may end behind compound c.
    pub(super) seams: AtomicU64,
}

/// Which free compounds a search may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Search {
    /// Those that are not kept for a block, and of them what it finds soon: past them there is the
    /// frontier.
    Bounded,
    /// All: the frontier has come to the slice's end.
    Whole,
}

impl Map {
    fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    fn free_for(&self, search: Search) -> u64 {
        match search {
            Search::Bounded => self.free() & !self.kept.load(Ordering::Relaxed),
            Search::Whole => self.free(),
        }
    }

    /// Where seams may be.
    pub(super) fn seams(&self) -> u64 {
        self.seams.load(Ordering::Relaxed)
    }

    /// Free and dirty.
    pub(super) fn resident(&self) -> u64 {
        self.free() & self.dirty.load(Ordering::Relaxed)
    }
}

/// Sets the bits of `mask`; the lock keeps others away.
fn set(word: &AtomicU64, mask: u64) {
    word.store(word.load(Ordering::Relaxed) | mask, Ordering::Relaxed);
}

/// Clears the bits of `mask`; the lock keeps others away.
fn clear(word: &AtomicU64, mask: u64) {
    word.store(word.load(Ordering::Relaxed) & !mask, Ordering::Relaxed);
}

impl Slice {
    /// The map that has the bit of compound `number`.
    pub(super) fn map(&self, number: u32) -> &'static Map {
        let address = self.base() + geometry().maps + number as usize / 64 * MAP_BYTES;
        // SAFETY: each compound below the slice's end has its map there, readable from the start; it
        // is written in open slices alone.
        unsafe { mem::record(address) }
    }

    /// Gives the pages of all free compounds back to the system; how many compounds that were.
    pub(crate) fn purge(&self) -> u32 {
        let _held = self.enter();
        let end = self.frontier();
        let mut purged = 0;
        let mut start = self.next_set(geometry().first, end, Map::resident);
        while start < end {
            let stop = self.next_set(start, end, |map| !map.resident());
            let address = self.base() + CompoundId(start).offset();
            let gone = mem::decommit(address, (stop - start) as usize * COMPOUND_BYTES).is_ok();
            // Broken on purpose, for the test that shows that injected faults find it.
            if cfg!(mutant = "refusal") || gone {
                self.for_each_map(start, stop - start, |map, mask| clear(&map.dirty, mask));
                self.resident.fetch_sub(stop - start, Ordering::Relaxed);
                purged += stop - start;
            }
            start = self.next_set(stop, end, Map::resident);
        }
        purged
    }

    /// Free compounds that may keep their pages.
    fn cap(&self) -> u32 {
        if let Some(chosen) = RESIDENT_MAX.load(Ordering::Relaxed).checked_sub(1) {
            return chosen;
        }
        let [used, free, _] = self.census();
        (used.saturating_sub(free) / FREE_RESIDENT_FRACTION).max(FREE_RESIDENT_MIN)
    }

    /// How many of `count` compounds that become free may keep their pages for now.
    pub(super) fn bearable(&self, count: u32) -> u32 {
        let hard = self.cap().max(FREE_RESIDENT_HARD);
        hard.saturating_sub(self.resident.load(Ordering::Relaxed)).min(count)
    }

    /// Where too many free compounds keep their pages, gives those of one back: of the highest, since
    /// the lowest are handed out first.
    pub(super) fn give_back_one(&self) {
        if self.resident.load(Ordering::Relaxed) <= self.cap() {
            return;
        }
        let number = {
            let _held = self.enter();
            let Some(number) = self.last_resident() else { return };
            self.mark_taken(number, 1);
            number
        };
        // Nobody's but this call's now: no lock is held while the system works.
        let address = self.base() + CompoundId(number).offset();
        let refused = mem::decommit(address, COMPOUND_BYTES).is_err();
        let _held = self.enter();
        self.mark_free(number, 1, refused);
    }

    fn last_resident(&self) -> Option<u32> {
        let mut end = self.resident_end.load(Ordering::Relaxed);
        while end > geometry().first {
            let last = end - 1;
            if let Some(bit) = bits::last_set_at_or_below(self.map(last).resident(), last % 64) {
                let number = last / 64 * 64 + bit;
                self.resident_end.store(number + 1, Ordering::Relaxed);
                return Some(number);
            }
            end = last / 64 * 64;
        }
        None
    }

    /// The first number from `from` on whose bit `of` says is set; `end` if none is below that.
    pub(super) fn next_set(&self, from: u32, end: u32, of: impl Fn(&Map) -> u64) -> u32 {
        let mut number = from;
        while number < end {
            let word = of(self.map(number)) >> (number % 64);
            if word != 0 {
                return (number + word.trailing_zeros()).min(end);
            }
            number = (number / 64 + 1) * 64;
        }
        end
    }

    /// Free compounds from `first` on, up to the frontier.
    pub(super) fn free_after(&self, first: u32) -> u32 {
        let end = self.frontier();
        self.next_set(first, end, |map| !map.free()).saturating_sub(first)
    }

    /// The first of `count` adjacent free compounds, its address a multiple of `align` compounds: in
    /// the shortest range that fits.
    pub(super) fn find_free(&self, count: u32, align: u32, search: Search) -> Option<u32> {
        if self.free.load(Ordering::Relaxed) < count {
            return None;
        }
        let low = self.lowest_free.load(Ordering::Relaxed).max(geometry().first);
        let (found, stop) = self.look(low, count, align, search);
        if found.is_some() || stop >= self.frontier() {
            return found;
        }
        // Among many holes that are too small: where the last search found something, and if there is
        // nothing any more, at others each time.  Else what fits behind them would never be found, and
        // the frontier would move for ever.
        let from = stop.max(self.rover.load(Ordering::Relaxed));
        let (found, stop) = self.look(from, count, align, search);
        let next = if found.is_some() { from } else { stop };
        self.rover.store(if next < self.frontier() { next } else { 0 }, Ordering::Relaxed);
        found
    }

    /// Looks at ranges from compound `from` on: the first number of the best, and where the looking
    /// ended.
    fn look(&self, from: u32, count: u32, align: u32, search: Search) -> (Option<u32>, u32) {
        let looks = if search == Search::Bounded { RANGES_SEARCHED } else { u32::MAX };
        let end = self.frontier();
        let mut stop = from;
        let mut best: Option<(u32, u32)> = None;
        for _ in 0..looks {
            if best.is_some_and(|(length, _)| length == count) {
                break;
            }
            let start = self.next_set(stop, end, |map| map.free_for(search));
            if start >= end {
                stop = end;
                break;
            }
            stop = self.next_set(start, end, |map| !map.free_for(search));
            let length = stop - start;
            let first = self.aligned(start, align);
            let fits = first.checked_add(count).is_some_and(|end| end <= stop);
            if fits && best.is_none_or(|(shortest, _)| length < shortest) {
                best = Some((length, first));
            }
        }
        (best.map(|(_, first)| first), stop)
    }

    /// Calls `change` with each map of `count` compounds from `first` on, and their bits in it.
    pub(super) fn for_each_map(&self, first: u32, count: u32, mut change: impl FnMut(&Map, u64)) {
        let end = first + count;
        let mut number = first;
        while number < end {
            let here = (64 - number % 64).min(end - number);
            change(self.map(number), bits::range(number % 64, here));
            number += here;
        }
    }

    /// Takes free compounds out of the maps; true when none of them is dirty.
    pub(super) fn mark_taken(&self, first: u32, count: u32) -> bool {
        let mut dirty = 0;
        self.for_each_map(first, count, |map, mask| {
            dirty += (map.dirty.load(Ordering::Relaxed) & mask).count_ones();
            clear(&map.free, mask);
            clear(&map.dirty, mask);
            clear(&map.kept, mask);
        });
        self.free.fetch_sub(count, Ordering::Relaxed);
        self.resident.fetch_sub(dirty, Ordering::Relaxed);
        if first == self.lowest_free.load(Ordering::Relaxed) {
            self.lowest_free.store(first + count, Ordering::Relaxed);
        }
        dirty == 0
    }

    /// Keeps free compounds for the block before them.
    pub(super) fn keep(&self, first: u32, count: u32) {
        self.for_each_map(first, count, |map, mask| set(&map.kept, mask));
    }

    /// Keeps the free compounds from `first` on no more.
    pub(super) fn keep_no_more(&self, first: u32) {
        let end = self.next_set(first, self.frontier(), |map| !map.kept.load(Ordering::Relaxed));
        self.for_each_map(first, end.max(first) - first, |map, mask| clear(&map.kept, mask));
    }

    /// Puts compounds into the maps.
    pub(super) fn mark_free(&self, first: u32, count: u32, dirty: bool) {
        self.for_each_map(first, count, |map, mask| {
            // First: a child forked in between must not take old bytes for zeros.
            if dirty {
                set(&map.dirty, mask);
            }
            set(&map.free, mask);
        });
        self.free.fetch_add(count, Ordering::Relaxed);
        self.lowest_free.fetch_min(first, Ordering::Relaxed);
        if dirty {
            self.resident.fetch_add(count, Ordering::Relaxed);
            self.resident_end.fetch_max(first + count, Ordering::Relaxed);
        }
    }
}

const _: () = assert!(size_of::<Map>() == MAP_BYTES);
