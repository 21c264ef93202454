//! How much of a slice is mapped, and how much of that is writable.
//!
//! A slice is reserved whole, and counts whole where the system limits address space (`RLIMIT_AS`) or
//! locked memory.  Before a program sets such a limit itself, or locks its memory, a *cut* unmaps what the
//! slice has not used so far, but for a part that it keeps to grow into: compounds from the new end on,
//! their entries in the tables, those of the metadata's own compounds, and the end of the room.
//!
//! ```text
//! base                                                                                   base + bytes
//! | class bytes | heap class bytes   | heads              | span records       | maps | room    | compounds |
//! | all         | hole | kept | hole | hole | kept | hole | hole | kept | hole | all  | k. | h. | k. | hole |
//! ```
//! Other maps of the program may come to stand in the holes.  None of them is taken for ours:
//! * The hit paths read class bytes alone, and those stay mapped.  They are 0 where no compound was ever
//!   cut into runs, in the metadata among them, and a cut leaves all compounds that were ever handed out.
//!   So a free of an address in a hole misses.
//! * The slow paths ask [`super::locate`], which finds nothing in a slice that was cut but from its first
//!   compound to its end.
//! * The end only falls, and never below the frontier: both are in one word (see [`super::frontier`]).
//!   What is handed out, and all entries of its compounds, stays mapped.  Nobody reads an entry past the
//!   frontier but by way of [`super::locate`].  Heap class bytes have no reader yet.
//! * No call makes a hole writable.  Commits under the lock stop at the end, and a cut takes the lock; one
//!   without the lock, in a signal handler, commits no more than was handed out to it, which no cut can
//!   reach any more.  Nothing else names memory past the frontier.
//! * A later cut unmaps only what the one before it left.
//!
//! What is unmapped does not come back: others may have it.  A limit that is raised again leaves the slice
//! as short as it is.

use core::ops::Range;

use super::slice::{Exhausted, Slice, geometry};
use crate::base::config::{
    COMMIT_STEP, COMPOUND_BYTES, CUT_COMPOUNDS_MIN, CUT_FRACTION, ROOM_FRACTION, ROOM_STEP,
};
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::errno::Errno;
use crate::sys::mem;

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

/// What of a slice may be mapped: number past the last compound, and the end of the room.
#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u32,
    room_end: usize,
}

impl Extent {
    /// The holes, in order: offsets from the slice's base.  All are empty in a slice that was never cut.
    fn holes(self) -> [Range<usize>; 6] {
        let geometry = geometry();
        let tables = geometry.tables_by_compound();
        let first = geometry.first as usize;
        // Where the entries of the first compound stand, and where those of the last one end.
        let starts =
            tables.map(|(table, bytes)| (table + first * bytes) / geometry.page * geometry.page);
        let ends = tables.map(|(table, bytes)| {
            (table + self.end as usize * bytes).next_multiple_of(geometry.page)
        });
        let compounds = self.end as usize * COMPOUND_BYTES..geometry.bytes;
        let holes = [
            geometry.heap_classes..starts[0],
            ends[0]..starts[1],
            ends[1]..starts[2],
            ends[2]..geometry.maps,
            self.room_end..geometry.room_end,
            compounds,
        ];
        let is_cut = self.end < geometry.end;
        holes.map(|hole| if is_cut { hole } else { hole.end..hole.end })
    }

    /// Bytes that stay mapped.
    fn bytes(self) -> usize {
        geometry().bytes - self.holes().iter().map(Range::len).sum::<usize>()
    }
}

impl Slice {
    fn extent(&self) -> Extent {
        Extent { end: self.end(), room_end: self.room_end.load(Ordering::Relaxed) }
    }

    /// True when compound `number` of this slice is ours: see the module's text.
    pub(super) fn has(&self, number: u32) -> bool {
        let end = self.end();
        number < end && (number >= geometry().first || end == geometry().end)
    }

    /// Bytes that a cut to nothing but what is in use would unmap.
    pub(crate) fn unused(&self) -> usize {
        self.extent().bytes().saturating_sub(self.shortest(0).bytes())
    }

    /// The slice with `keep` more compounds to hand out, and room for their metadata.
    fn shortest(&self, keep: u32) -> Extent {
        let now = self.extent();
        let room = self.room_committed.load(Ordering::Relaxed).max(geometry().room);
        let more = ROOM_STEP + keep as usize * COMPOUND_BYTES / ROOM_FRACTION;
        Extent {
            end: self.frontier().saturating_add(keep).min(now.end),
            room_end: (room + more).next_multiple_of(ROOM_STEP).min(now.room_end),
        }
    }

    /// Unmaps what is not in use, but for about `bytes` to grow into, and for a few compounds in any case.
    pub(crate) fn cut(&self, bytes: usize) {
        let keep = u32::try_from(bytes / (COMPOUND_BYTES + COMPOUND_BYTES / CUT_FRACTION));
        let keep = keep.unwrap_or(u32::MAX).clamp(CUT_COMPOUNDS_MIN, geometry().end);
        let _held = self.enter();
        let old = self.extent();
        let room_end = self.shortest(keep).room_end;
        let (_, end) = self.frontier.cut(keep);
        self.room_end.store(room_end, Ordering::Relaxed);
        for (old, new) in old.holes().into_iter().zip(Extent { end, room_end }.holes()) {
            mem::release(self.base() + new.start, old.start - new.start);
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
