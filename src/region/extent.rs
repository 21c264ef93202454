//! How much of a slice is mapped, and how much of that is writable.
//!
//! A slice is reserved whole, and counts whole where the system limits address space (`RLIMIT_AS`) or
//! locked memory.  Before a program sets such a limit itself, or locks its memory, a *cut* unmaps what the
//! slice has not used so far, but for a part that it keeps to grow into: compounds from the new end on,
//! their entries in the tables, those of the metadata's own compounds, and the end of the room.  Where
//! address space is limited from the start, a slice begins as if nothing had been kept.  What is not mapped
//! is mapped once it is needed: see [`super::lengthen`].
//!
//! ```text
//! base                                                                                   base + bytes
//! | class bytes | heap class bytes   | heads              | span records       | maps | room    | compounds |
//! | all         | hole | kept | hole | hole | kept | hole | hole | kept | hole | all  | k. | h. | k. | hole |
//! ```
//! Of each table at least a page is kept, and of the compounds a page without access behind the last one:
//! what they grow from.
//!
//! Other maps of the program may come to stand in the holes.  None of them is taken for ours:
//! * The hit paths read class bytes alone, and those stay mapped.  They are 0 where no compound was ever
//!   cut into runs, in the metadata among them, and a cut leaves all compounds that were ever handed out.
//!   So a free of an address in a hole misses.
//! * The slow paths ask [`super::locate`], which finds nothing in a slice with holes but from its first
//!   compound to its end.
//! * The end never falls below the frontier: both are in one word (see [`super::frontier`]).  What is handed
//!   out, and all entries of its compounds, stays mapped.  Nobody reads an entry past the frontier but by
//!   way of [`super::locate`].  Heap class bytes have no reader yet.
//! * The end rises over what was a hole only once that is mapped, where nothing else was.  Who has a
//!   map of its own in a hole keeps the end below it, and got it after the cut that made the hole, and so
//!   sees an end that is no older.  Who frees a block got it after the end rose over it.
//! * No call makes a hole writable.  Commits under the lock stop at the end, and a cut takes the lock; one
//!   without the lock, in a signal handler, commits no more than was handed out to it, which no cut can
//!   reach any more.  A cut lowers the number that says what is writable to the new end.  Nothing else names
//!   memory past the frontier.
//! * A later cut unmaps only what the one before it left, or what was mapped since.

use core::ops::Range;

use super::slice::{Exhausted, Slice, geometry};
use crate::base::config::{
    COMMIT_STEP, COMPOUND_BYTES, CUT_COMPOUNDS_MIN, CUT_FRACTION, ROOM_FRACTION,
};
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::errno::Errno;
use crate::sys::mem;

/// Parts of a slice that has holes, of which three are the tables with an entry a compound.
pub(super) const PARTS: usize = 6;
/// The maps and the room.
const ROOM_PART: usize = 4;
/// The compounds.
const COMPOUNDS_PART: usize = 5;

/// 1 while all memory is locked: what is made writable is resident at once.
static LOCKED: AtomicU32 = AtomicU32::new(0);

/// Notes whether all memory is locked.
pub(crate) fn note_locked(locked: bool) {
    LOCKED.store(u32::from(locked), Ordering::Relaxed);
}

/// True while all memory is locked.
pub(super) fn is_locked() -> bool {
    LOCKED.load(Ordering::Relaxed) != 0
}

/// What of a slice is mapped: number past the last compound, and the end of the room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) end: u32,
    pub(super) room_end: usize,
    /// False for a slice without holes.
    pub(super) has_holes: bool,
}

impl Extent {
    /// That of a slice without holes.
    pub(super) fn whole() -> Self {
        let geometry = geometry();
        Self { end: geometry.end, room_end: geometry.room_end, has_holes: false }
    }

    /// The parts of a slice with holes, in order: offsets from its base.
    pub(super) fn part(self, number: usize) -> Range<usize> {
        let geometry = geometry();
        match number {
            0 => 0..geometry.heap_classes,
            ROOM_PART => geometry.maps..self.room_end,
            COMPOUNDS_PART => {
                let end = self.end as usize * COMPOUND_BYTES;
                // The last page of all: see the module's text.
                geometry.room_end..(end + geometry.page).min(geometry.bytes)
            }
            table => {
                let page = geometry.page;
                let (offset, bytes) = geometry.table_by_compound(table);
                // Where the first compound's entry stands, and where the last one's ends.
                let start = (offset + geometry.first as usize * bytes) / page * page;
                let end = (offset + self.end as usize * bytes).next_multiple_of(page);
                start..end.max(start + page)
            }
        }
    }

    /// The same with more compounds and more room, where that is more.
    pub(super) fn longer(self, end: u32, room_end: usize) -> Self {
        let room_end = room_end.next_multiple_of(geometry().page).min(geometry().room_end);
        let end = end.min(geometry().end);
        Self { end: self.end.max(end), room_end: self.room_end.max(room_end), ..self }
    }

    /// The hole behind a part: empty in a slice without holes.
    fn hole(self, number: usize) -> Range<usize> {
        let next = number + 1;
        let end = if next < PARTS { self.part(next).start } else { geometry().bytes };
        if self.has_holes { self.part(number).end..end } else { end..end }
    }

    /// Bytes that are mapped.
    pub(super) fn mapped(self) -> usize {
        geometry().bytes - (0..PARTS).map(|number| self.hole(number).len()).sum::<usize>()
    }
}

impl Slice {
    pub(super) fn extent(&self) -> Extent {
        Extent {
            end: self.end(),
            room_end: self.room_end.load(Ordering::Relaxed),
            has_holes: self.has_holes.load(Ordering::Relaxed) != 0,
        }
    }

    /// True when compound `number` of this slice, which may have holes, is ours: see the module's text.
    pub(super) fn has(&self, number: u32) -> bool {
        (geometry().first..self.end()).contains(&number)
    }

    /// Bytes that a cut to nothing but what is in use would unmap.
    pub(crate) fn unused(&self) -> usize {
        self.extent().mapped().saturating_sub(self.shortest(0).mapped())
    }

    /// The slice with `keep` more compounds to hand out, and room for their metadata.
    fn shortest(&self, keep: u32) -> Extent {
        let now = self.extent();
        let room = self.room_committed.load(Ordering::Relaxed).max(geometry().room);
        let more = keep as usize * COMPOUND_BYTES / ROOM_FRACTION;
        Extent {
            end: self.frontier().saturating_add(keep).min(now.end),
            room_end: (room + more).next_multiple_of(geometry().page).min(now.room_end),
            has_holes: true,
        }
    }

    /// Unmaps what is not in use, but for about `bytes` to grow into, and for a little in any case.
    pub(crate) fn cut(&self, bytes: usize) {
        let least = if self.is_open() { CUT_COMPOUNDS_MIN } else { 0 };
        let keep = u32::try_from(bytes / (COMPOUND_BYTES + COMPOUND_BYTES / CUT_FRACTION));
        let keep = keep.unwrap_or(u32::MAX).clamp(least, geometry().end);
        let _held = self.enter();
        let old = self.extent();
        let room_end = self.shortest(keep).room_end;
        // First: a child that is forked from here on finds them longer than it is told.
        for (number, real) in self.ends.iter().enumerate() {
            real.fetch_max(old.hole(number).start, Ordering::Relaxed);
        }
        let (_, end) = self.frontier.cut(keep);
        self.room_end.store(room_end, Ordering::Relaxed);
        self.has_holes.store(1, Ordering::Relaxed);
        self.shrink();
        if end < geometry().end {
            // It may have been writable, ahead of its use.
            mem::forbid(self.base() + end as usize * COMPOUND_BYTES, geometry().page);
        }
    }

    /// Makes all compounds below `end`, and their metadata, writable, and some more of them.  The caller
    /// holds the slice's lock.
    pub(super) fn commit(&self, end: u32) -> Result<(), Exhausted> {
        let done = self.frontier.committed();
        if end <= done {
            return Ok(());
        }
        if end > self.end() {
            return Err(Exhausted);
        }
        let generous = end.next_multiple_of(COMMIT_STEP).min(self.end());
        if is_locked() || self.commit_range(done, generous).is_err() {
            // Near a limit: no more than is asked for.
            return self.commit_exactly(end);
        }
        self.frontier.note_committed(generous);
        Ok(())
    }

    /// Makes all compounds below `end`, which have been handed out or are kept by the lock, and their
    /// metadata writable.  Idempotent, so it needs no lock.
    pub(super) fn commit_exactly(&self, end: u32) -> Result<(), Exhausted> {
        let done = self.frontier.committed();
        if end > done {
            self.commit_range(done, end).map_err(|_| Exhausted)?;
            self.frontier.note_committed(end);
        }
        Ok(())
    }

    fn commit_range(&self, from: u32, to: u32) -> Result<(), Errno> {
        let page = geometry().page;
        let (from, to) = (from as usize, to as usize);
        let commit = |start: usize, end: usize| {
            // Entries of neighbours may share a page that is writable already.
            let start = start / page * page;
            let end = end.next_multiple_of(page);
            mem::commit(self.base() + start, end - start)
        };
        for (table, bytes) in geometry().tables() {
            commit(table + from * bytes, table + to * bytes)?;
        }
        mem::commit(self.base() + from * COMPOUND_BYTES, (to - from) * COMPOUND_BYTES)
    }
}
