//! A node's slice of address space: compounds handed out, taken back, committed and decommitted.
//!
//! A free compound below the frontier (see [`super::frontier`]) has its bit in a map (see
//! [`super::free`]), under the lock.
//!
//! Free compounds keep their pages up to a cap: 32 MiB, or an eighth of what is in use.  Beyond it each
//! call that takes or gives compounds gives the pages of one back to the system, so no call pays for
//! more than 2 MiB of them; only what passes 256 MiB, or that eighth where it is more, goes at once, with
//! the call that frees it.
#![allow(unsafe_code, reason = "metadata records live at fixed offsets of the slice")]

use super::compound::{Head, State};
use super::extent::Extent;
use super::extent::PARTS;
use super::free::Search;
use super::frontier::Frontier;
use super::geometry::{Geometry, HEAD_BYTES};
use crate::base::config::{
    COMPOUND_BYTES, COMPOUND_SHIFT, HUGE_FROM, NODE_RECORD_BYTES, ROOM_STEP, RUN_SHIFT,
    SLAB_BYTES_PACKED, SPLITS_MAX,
};
use crate::base::ids::CompoundId;
use crate::base::sync::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use crate::sys::fault::splits;
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::mem;

/// What an opened node needs at once: its records, and a packed slab of the CPU that opens it.
const OPEN_BYTES: usize = NODE_RECORD_BYTES + SLAB_BYTES_PACKED;

/// A node's slice.
#[derive(Debug)]
pub(crate) struct Slice {
    base: AtomicUsize,
    lock: Lock,
    pub(super) frontier: Frontier,
    /// No free compound has a lower number.
    pub(super) lowest_free: AtomicU32,
    /// Where a search looks next when the lowest ranges are too short.
    pub(super) rover: AtomicU32,
    /// Free compounds that still have their pages.
    pub(super) resident: AtomicU32,
    /// No free compound from this number on has its pages.
    pub(super) resident_end: AtomicU32,
    /// Free compounds below the frontier.
    pub(super) free: AtomicU32,
    room_used: AtomicUsize,
    pub(super) room_committed: AtomicUsize,
    /// Where the room ends.
    pub(super) room_end: AtomicUsize,
    /// 1 when parts of the slice are not mapped: see [`super::extent`].
    /// Offsets at which parts end that are longer than the slice's extent says: since the system refused to unmap
    /// what it no longer needs, or a child was forked before they were noted; 0 for the others.
    pub(super) ends: [AtomicUsize; PARTS],
    pub(super) has_holes: AtomicU32,
}

/// No compound is left, or the system refuses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exhausted;

/// Compounds that were handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The first one.
    pub(crate) first: CompoundId,
    /// True when every byte is zero.
    pub(crate) zeroed: bool,
}

impl Slice {
    /// A slice without address space.
    pub(super) const fn new() -> Self {
        Self {
            base: AtomicUsize::new(0),
            lock: Lock::new(),
            frontier: Frontier::new(),
            lowest_free: AtomicU32::new(u32::MAX),
            rover: AtomicU32::new(0),
            resident: AtomicU32::new(0),
            resident_end: AtomicU32::new(0),
            free: AtomicU32::new(0),
            room_used: AtomicUsize::new(0),
            room_committed: AtomicUsize::new(0),
            room_end: AtomicUsize::new(0),
            ends: [const { AtomicUsize::new(0) }; PARTS],
            has_holes: AtomicU32::new(0),
        }
    }

    /// Gives the slice its address space, of which `extent` is mapped.
    pub(super) fn place(&self, base: usize, extent: Extent) {
        let geometry = geometry();
        self.base.store(base, Ordering::Relaxed);
        self.frontier.place(geometry.first, extent.end);
        self.room_used.store(geometry.room, Ordering::Relaxed);
        // The maps stand before the room, and become writable with it.
        self.room_committed.store(geometry.maps, Ordering::Relaxed);
        self.room_end.store(extent.room_end, Ordering::Relaxed);
        self.has_holes.store(extent.has_holes.into(), Ordering::Relaxed);
    }

    /// First byte of the slice, where its class bytes start.
    pub(crate) fn base(&self) -> usize {
        self.base.load(Ordering::Relaxed)
    }

    /// Makes the node's memory usable, at its first use.
    pub(crate) fn open(&self) -> Result<(), Exhausted> {
        if self.is_open() {
            return Ok(());
        }
        let _held = self.enter();
        if self.is_open() {
            return Ok(());
        }
        let record = geometry().room;
        self.commit_room(record + OPEN_BYTES)?;
        mem::populate(self.base() + record, OPEN_BYTES);
        if self.room_used.load(Ordering::Relaxed) == geometry().room {
            self.room_used.store(geometry().room + NODE_RECORD_BYTES, Ordering::Relaxed);
        }
        self.frontier.open();
        Ok(())
    }

    /// True once [`Slice::open`] succeeded.
    pub(crate) fn is_open(&self) -> bool {
        self.frontier.is_open()
    }

    /// The node's page heap record and pools: [`NODE_RECORD_BYTES`] zero bytes to begin with.
    pub(crate) fn node_record(&self) -> usize {
        self.base() + geometry().room
    }

    /// Metadata without a fixed place: zeroed, on this node, never given back.
    pub(crate) fn room(&self, bytes: usize) -> Result<usize, Exhausted> {
        let _held = self.enter();
        self.take_room(bytes)
    }

    /// Room whose address is kept in `word`, unless another thread has had it made: in any case `word`
    /// then names it to all who load it with Acquire.
    pub(crate) fn room_once(&self, word: &AtomicUsize, bytes: usize) -> Result<(), Exhausted> {
        let _held = self.enter();
        if word.load(Ordering::Relaxed) == 0 {
            word.store(self.take_room(bytes)?, Ordering::Release);
        }
        Ok(())
    }

    fn take_room(&self, bytes: usize) -> Result<usize, Exhausted> {
        let start = self.room_used.load(Ordering::Relaxed);
        let end = start + bytes.next_multiple_of(64);
        self.commit_room(end)?;
        self.room_used.store(end, Ordering::Relaxed);
        Ok(self.base() + start)
    }

    fn commit_room(&self, end: usize) -> Result<(), Exhausted> {
        let done = self.room_committed.load(Ordering::Relaxed);
        if end <= done {
            return Ok(());
        }
        if end > self.room_end.load(Ordering::Relaxed) {
            self.lengthen_room(end);
        }
        let room_end = self.room_end.load(Ordering::Relaxed);
        if end > room_end {
            return Err(Exhausted);
        }
        let upto = (end + ROOM_STEP).next_multiple_of(ROOM_STEP).min(room_end);
        mem::commit(self.base() + done, upto - done).map_err(|_| Exhausted)?;
        self.room_committed.store(upto, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn enter(&self) -> Held<'_> {
        let held = self.lock.enter(Rank::Slice);
        if held.orphaned() {
            self.rebuild();
        }
        held
    }

    /// After a fork: what is free follows from the states of the heads.
    fn rebuild(&self) {
        let (mut free, mut resident, mut lowest) = (0, 0, u32::MAX);
        for number in geometry().first..self.frontier() {
            let map = self.map(number);
            let bit = 1 << (number % 64);
            if self.head(CompoundId(number)).state() != State::Unused {
                map.free.fetch_and(!bit, Ordering::Relaxed);
                map.kept.fetch_and(!bit, Ordering::Relaxed);
            } else if map.free.load(Ordering::Relaxed) & bit != 0 {
                free += 1;
                lowest = lowest.min(number);
                resident += u32::from(map.dirty.load(Ordering::Relaxed) & bit != 0);
            }
            // An unused compound without its bit was on its way when its thread was lost: leaked.
        }
        self.free.store(free, Ordering::Relaxed);
        self.resident.store(resident, Ordering::Relaxed);
        self.resident_end.store(self.frontier(), Ordering::Relaxed);
        self.lowest_free.store(lowest, Ordering::Relaxed);
    }

    /// Number past the highest compound ever handed out.
    pub(crate) fn frontier(&self) -> u32 {
        self.frontier.get()
    }

    /// Number past the last compound that may be handed out.
    pub(super) fn end(&self) -> u32 {
        self.frontier.end()
    }

    /// Hands out `count` adjacent compounds, the first one's address a multiple of `align` compounds, a
    /// power of two: the shortest of the free ranges that are looked at serves, or else the frontier.
    pub(crate) fn take(&self, count: u32, align: u32) -> Result<Taken, Exhausted> {
        self.take_roomy(count, align, 0)
    }

    /// As [`Slice::take`]; `room` free compounds behind are kept for the block.
    pub(super) fn take_roomy(&self, count: u32, align: u32, room: u32) -> Result<Taken, Exhausted> {
        let taken = self.take_held(count, align, room);
        self.give_back_one();
        taken
    }

    // As `put_held`.
    #[inline(never)]
    fn take_held(&self, count: u32, align: u32, room: u32) -> Result<Taken, Exhausted> {
        let all = count.checked_add(room).ok_or(Exhausted)?;
        let _held = self.enter();
        let first = self
            .find_free(all, align, Search::Bounded)
            .or_else(|| self.free_beyond(all, align))
            .or_else(|| self.find_free(all, align, Search::Whole))
            .ok_or(Exhausted)?;
        let zeroed = self.mark_taken(first, count);
        self.keep(first + count, room);
        Ok(Taken { first: CompoundId(first), zeroed })
    }

    /// Moves the frontier past `count` free compounds; the first one's number.
    fn free_beyond(&self, count: u32, align: u32) -> Option<u32> {
        // Mapped and committed before it is handed out: a refusal then leaves nothing to undo.
        let end = self.aligned(self.frontier(), align).checked_add(count)?;
        if end >= self.end() {
            // One more, where there is one: for signal handlers, which cannot map any.
            self.lengthen(end);
        }
        self.commit(end).ok()?;
        let (skipped, first) = self.advance(count, align).ok()?;
        // A handler may have moved the frontier meanwhile.  If the system refuses now, the numbers
        // are lost, and no memory.
        self.commit(first + count).ok()?;
        self.mark_free(skipped, first + count - skipped, false);
        Some(first)
    }

    /// Asks for a huge page under a compound that is about to be cut into runs, which fill it, once the
    /// heap has grown: a small one lives on few base pages.  Blocks of whole compounds may be sparse, so
    /// it is not asked for them.
    pub(crate) fn prefer_huge(&self, id: CompoundId) {
        let [used, free, _] = self.census();
        if used - free > HUGE_FROM && splits() < SPLITS_MAX {
            mem::prefer_huge(self.base() + id.offset(), COMPOUND_BYTES);
        }
    }

    /// Hands out `count` fresh compounds without the lock: for signal handlers.
    pub(crate) fn take_fresh(&self, count: u32) -> Result<CompoundId, Exhausted> {
        let (_, first) = self.advance(count, 1)?;
        self.commit_exactly(first + count)?;
        Ok(CompoundId(first))
    }

    fn advance(&self, count: u32, align: u32) -> Result<(u32, u32), Exhausted> {
        self.frontier.advance(count, |from| self.aligned(from, align)).ok_or(Exhausted)
    }

    /// The first number from `number` on whose compound's address is a multiple of `align` compounds;
    /// past the slice's end when there is none.
    pub(super) fn aligned(&self, number: u32, align: u32) -> u32 {
        let base = (self.base() >> COMPOUND_SHIFT) as u64;
        let aligned = (base + u64::from(number)).next_multiple_of(u64::from(align)) - base;
        u32::try_from(aligned).unwrap_or(geometry().end).min(geometry().end)
    }

    /// Takes `count` compounds back.  Their pages stay while not too many do.
    pub(crate) fn put(&self, first: CompoundId, count: u32) {
        self.put_held(first, count);
        self.give_back_one();
    }

    // Apart, so that what follows it does not run above its frame.
    #[inline(never)]
    fn put_held(&self, first: CompoundId, count: u32) {
        let kept = self.bearable(count);
        let rest = CompoundId(first.0 + kept);
        let bytes = (count - kept) as usize * COMPOUND_BYTES;
        // The range is still the caller's: no lock is held over the call.
        let refused = bytes > 0 && mem::decommit(self.base() + rest.offset(), bytes).is_err();
        self.retire(first, count);
        let _held = self.enter();
        if kept > 0 {
            self.mark_free(first.0, kept, true);
        }
        if kept < count {
            self.mark_free(rest.0, count - kept, refused);
        }
        self.keep_no_more(first.0 + count);
    }

    /// Takes `count` compounds without pages back.
    pub(crate) fn put_empty(&self, first: CompoundId, count: u32) {
        self.retire(first, count);
        let _held = self.enter();
        self.mark_free(first.0, count, false);
        self.keep_no_more(first.0 + count);
    }

    fn retire(&self, first: CompoundId, count: u32) {
        for number in first.0..first.0 + count {
            let head = self.head(CompoundId(number));
            head.transit(head.state(), State::Unused);
        }
    }

    /// True when the compound was handed out once, so that its head may be read and written.
    pub(crate) fn is_known(&self, id: CompoundId) -> bool {
        id.0 >= geometry().first && id.0 < self.frontier()
    }

    /// The head of a compound.
    pub(crate) fn head(&self, id: CompoundId) -> &'static Head {
        let address = self.base() + geometry().heads + id.0 as usize * HEAD_BYTES;
        // SAFETY: each compound below the slice's end has its head there, readable from the start;
        // it is written below the committed frontier alone.
        unsafe { mem::record(address) }
    }

    /// The class byte of a run, by its number in the slice.
    pub(crate) fn class_byte(&self, run: usize) -> &'static AtomicU8 {
        debug_assert!(run < geometry().runs());
        // SAFETY: each run has its byte at the slice's base, readable from the start.
        unsafe { mem::record(self.base() + run) }
    }

    /// Address of the span record of a run, by its number in the slice.
    pub(crate) fn span_record(&self, run: usize) -> usize {
        debug_assert!(run < geometry().runs());
        self.base() + geometry().spans + run * crate::base::config::SPAN_RECORD_BYTES
    }

    /// Address of a run.
    pub(crate) fn run_address(&self, run: usize) -> usize {
        self.base() + (run << RUN_SHIFT)
    }

    /// Compounds below the frontier, those that are free, and those of them that keep their pages.
    pub(crate) fn census(&self) -> [u32; 3] {
        let used = self.frontier() - geometry().first;
        [used, self.free.load(Ordering::Relaxed), self.resident.load(Ordering::Relaxed)]
    }
}

pub(super) fn geometry() -> &'static Geometry {
    super::geometry()
}

const _: () = assert!(size_of::<Head>() == HEAD_BYTES);
