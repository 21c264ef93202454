//! Which of a slice's compounds are free, and which of those keep their pages.  Under the slice's lock.

use super::geometry;
use super::slice::Slice;
use crate::base::config::COMPOUND_BYTES;
use crate::base::ids::CompoundId;
use crate::base::sync::Ordering;
use crate::sys::mem;

impl Slice {
    /// Gives the pages of all free compounds back to the system; how many compounds that were.
    pub(crate) fn purge(&self) -> u32 {
        let _held = self.enter();
        let mut purged = 0;
        let mut number = geometry().first;
        while number < self.frontier() {
            let run = self.dirty_run(number);
            if run > 0 {
                let address = self.base() + CompoundId(number).offset();
                if mem::decommit(address, run as usize * COMPOUND_BYTES).is_ok() {
                    self.clear_dirty(number, run);
                    purged += run;
                }
            }
            number += run.max(1);
        }
        purged
    }

    fn dirty_run(&self, first: u32) -> u32 {
        let is_dirty = |number: &u32| {
            let bank = self.bank(CompoundId(*number));
            let both = bank.dirty.load(Ordering::Relaxed) & bank.free.load(Ordering::Relaxed);
            both >> (number % 64) & 1 != 0
        };
        (first..self.frontier()).take_while(is_dirty).fold(0, |run, _| run + 1)
    }

    fn clear_dirty(&self, first: u32, count: u32) {
        for number in first..first + count {
            self.bank(CompoundId(number)).dirty.fetch_and(!(1 << (number % 64)), Ordering::Relaxed);
        }
        self.resident.fetch_sub(count, Ordering::Relaxed);
    }

    pub(super) fn is_free(&self, number: u32) -> bool {
        self.bank(CompoundId(number)).free.load(Ordering::Relaxed) >> (number % 64) & 1 != 0
    }

    pub(super) fn find_free(&self, count: u32, align: u32) -> Option<u32> {
        if self.free.load(Ordering::Relaxed) < count {
            return None;
        }
        let frontier = self.frontier();
        let mut start = self.lowest_free.load(Ordering::Relaxed).max(geometry().first);
        let mut length = 0;
        let mut number = start;
        while number < frontier {
            if number.is_multiple_of(64)
                && self.bank(CompoundId(number)).free.load(Ordering::Relaxed) == 0
            {
                number += 64;
                length = 0;
                continue;
            }
            if !self.is_free(number) {
                length = 0;
            } else if length > 0 {
                length += 1;
            } else if self.aligned(number, align) == number {
                start = number;
                length = 1;
            }
            if length == count {
                return Some(start);
            }
            number += 1;
        }
        None
    }

    pub(super) fn mark_taken(&self, first: u32, count: u32) -> bool {
        let mut dirty = 0;
        for number in first..first + count {
            let bank = self.bank(CompoundId(number));
            let bit = 1 << (number % 64);
            bank.free.fetch_and(!bit, Ordering::Relaxed);
            dirty += u32::from(bank.dirty.fetch_and(!bit, Ordering::Relaxed) & bit != 0);
        }
        self.free.fetch_sub(count, Ordering::Relaxed);
        self.resident.fetch_sub(dirty, Ordering::Relaxed);
        dirty == 0
    }

    pub(super) fn mark_free(&self, first: u32, count: u32, dirty: bool) {
        for number in first..first + count {
            let bank = self.bank(CompoundId(number));
            let bit = 1 << (number % 64);
            if dirty {
                bank.dirty.fetch_or(bit, Ordering::Relaxed);
            }
            bank.free.fetch_or(bit, Ordering::Relaxed);
        }
        self.free.fetch_add(count, Ordering::Relaxed);
        self.resident.fetch_add(if dirty { count } else { 0 }, Ordering::Relaxed);
        self.lowest_free.fetch_min(first, Ordering::Relaxed);
    }
}
