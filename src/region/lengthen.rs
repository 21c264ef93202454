//! Slices with holes that get longer: what no limit leaves room for at once is mapped when it is needed.
//!
//! Where address space is limited at start, of each slice only the class bytes are mapped, and a page of each
//! other part: its *seed*.  After a cut the last pages of what is left are the seeds.  Each is the kernel's
//! map that its part ends with, and is made longer in place by mremap: what is new has its access, its node
//! and its other properties, and is merged with it, so no call is needed that a sandbox entered after
//! the start would not allow.
//!
//! The kernel makes a map longer only where nothing is in the way, so no other map is ever replaced.  One
//! that came to stand there ends the growth of that slice for as long as it stays; other nodes' slices serve.
//! Where a part really ends is noted right after the call that made it longer, and what could not be unmapped
//! stays noted.  So other nodes' slices serve, too, in a child that was forked by another thread between such
//! a call and its note, and on a machine of one node none does.  Other maps are unlikely there: the system
//! hands out address space from the top, the slices lie further below than a limit lets maps come, and the
//! hole that a cut makes is filled from its far end.
//!
//! All parts are made longer under the slice's lock, or none: then the end rises (S6 in
//! [`super::frontier`]), and only from there on [`super::locate`] knows of them.
//!
//! Steps are small near a limit, so that threads find room for their stacks.  How much the limit leaves is
//! known from the start or from the call that set it; what other maps took since is not.

use super::extent::PARTS;
use super::slice::{Slice, geometry};
use crate::base::config::{COMPOUND_BYTES, LENGTHEN_FRACTION, LENGTHEN_STEP, RUN_BYTES};
use crate::base::sync::{AtomicUsize, Ordering};
use crate::sys::mem;

/// Bytes of address space that the limit leaves, as far as is known; all where there is no limit.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Notes how much address space a limit leaves; none where there is no limit.
pub(crate) fn note_left(bytes: Option<usize>) {
    LEFT.store(bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// Bytes that may be mapped at once beyond what is asked for.
pub(crate) fn bearable_step() -> usize {
    let left = LEFT.load(Ordering::Relaxed) / LENGTHEN_FRACTION as usize;
    left.min(LENGTHEN_STEP as usize * COMPOUND_BYTES)
}

fn note_mapped(bytes: usize) {
    let less = |left| (left != usize::MAX).then(|| usize::saturating_sub(left, bytes));
    let _ = LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl Slice {
    /// Compounds to map at once beyond those that are asked for.
    fn step(&self) -> u32 {
        let [used, _, _] = self.census();
        let bearable = u32::try_from(bearable_step() / COMPOUND_BYTES).unwrap_or(u32::MAX);
        bearable.min(used / LENGTHEN_FRACTION + 1)
    }

    /// Maps more compounds, if all below `need`, and maybe some more, are to be had.  The caller holds the
    /// slice's lock.
    pub(super) fn lengthen(&self, need: u32) {
        if need <= geometry().end {
            self.stretch_some(need, 0);
        }
    }

    /// Maps more of the room, if all below `need`, an offset, and maybe some more, is to be had.  The caller
    /// holds the slice's lock.
    pub(super) fn lengthen_room(&self, need: usize) {
        if need <= geometry().room_end {
            self.stretch_some(0, need);
        }
    }

    /// Makes all parts longer, or none: compounds end at `end` or later, or the room at `room_end`; the
    /// other is 0.
    // One frame for all that leads to the system: much of the stack is used already.
    #[cold]
    #[inline(never)]
    fn stretch_some(&self, end: u32, room_end: usize) {
        let mut more = self.step();
        loop {
            let end = if end > 0 { end.saturating_add(more) } else { 0 };
            // A run for each compound that would be mapped.
            let room_end = if room_end > 0 { room_end + more as usize * RUN_BYTES } else { 0 };
            // The longest part first: a refusal costs least.
            let mut number = PARTS;
            while number > 0 && self.stretch_part(number - 1, end, room_end) {
                number -= 1;
            }
            if number == 0 {
                self.note_stretched(end, room_end);
                return;
            }
            self.shrink();
            if more == 0 {
                return;
            }
            more /= 2;
        }
    }

    fn stretch_part(&self, number: usize, end: u32, room_end: usize) -> bool {
        let (from, to) = self.more(number, end, room_end);
        if from >= to {
            return true;
        }
        let is_done = mem::lengthen(self.base() + from, geometry().page, to - from).is_ok();
        if is_done {
            self.ends[number].store(to, Ordering::Relaxed);
        }
        is_done
    }

    /// Where a part ends, and where it is to.
    #[inline(never)]
    fn more(&self, number: usize, end: u32, room_end: usize) -> (usize, usize) {
        let old = self.extent();
        let from = old.part(number).end.max(self.ends[number].load(Ordering::Relaxed));
        (from, old.longer(end, room_end).part(number).end)
    }

    /// Unmaps what parts are longer than the slice's extent says.
    #[inline(never)]
    pub(super) fn shrink(&self) {
        let extent = self.extent();
        for (number, real) in self.ends.iter().enumerate() {
            let [end, to] = [extent.part(number).end, real.load(Ordering::Relaxed)];
            if to > end && mem::release(self.base() + end, to - end) {
                real.store(0, Ordering::Relaxed);
            }
        }
    }

    #[inline(never)]
    fn note_stretched(&self, end: u32, room_end: usize) {
        let old = self.extent();
        let new = old.longer(end, room_end);
        self.room_end.store(new.room_end, Ordering::Relaxed);
        self.frontier.grow(new.end);
        note_mapped((new.end - old.end) as usize * COMPOUND_BYTES + new.room_end - old.room_end);
    }
}
