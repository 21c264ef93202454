//! Memory for signal handlers that interrupted their own thread in a slow path: no lock is taken.
//!
//! Blocks are cut from a compound of their own by moving one word (see [`super::bump`]), and each holds a
//! count of its compound; the compound goes back when the last of them is freed by a normal slow path.
//! A header before each block tells its length; who frees a block got it from who took it, so headers
//! need no order.
#![allow(unsafe_code, reason = "block headers in memory that no one else has yet")]

use super::bump::{BLOCKS_MAX, Bump, Full};
use super::large;
use crate::base::config::COMPOUND_BYTES;
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::stack::Stack;
use crate::base::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::region::{self, Exhausted, Left, Place, Slice, State};
use crate::sys::fatal::{Fault, misuse, not_a_start};
use crate::sys::mem;

static BUMP: Bump = Bump::new();
/// Empty compounds that a handler may not give back itself: it takes no lock.
static EMPTY: Stack = Stack::new();
/// Start of one empty compound that is kept for the handlers; 0 is none.
static SPARE: AtomicUsize = AtomicUsize::new(0);

/// Stands before each block.
#[repr(C, align(16))]
#[derive(Debug)]
struct Header {
    /// Bytes of the block; 0 once it is free.
    bytes: AtomicU64,
    /// Tells a header from other bytes: its address, turned over.
    mark: AtomicU64,
}

const HEADER_BYTES: usize = size_of::<Header>();
/// Larger blocks get compounds of their own.
const BLOCK_BYTES_MAX: usize = COMPOUND_BYTES / 4;

/// Hands out `bytes` at `align`, a power of two, from `node`, without a lock.
pub(crate) fn take(node: NodeIndex, bytes: usize, align: usize) -> Result<usize, Exhausted> {
    let slice = region::slice(node);
    if !slice.is_open() || align > COMPOUND_BYTES {
        return Err(Exhausted);
    }
    if bytes + align > BLOCK_BYTES_MAX {
        let count = u32::try_from(bytes.max(1).div_ceil(COMPOUND_BYTES)).map_err(|_| Exhausted)?;
        let first = slice.take_fresh(count)?;
        large::begin(slice, first, count, count as usize * COMPOUND_BYTES);
        return Ok(slice.base() + first.offset());
    }
    loop {
        match BUMP.cut(HEADER_BYTES, bytes.max(1), align.max(HEADER_BYTES)) {
            Ok(block) => {
                write_header(block, bytes.max(1));
                return Ok(block);
            }
            Err(full) => replace(node, full)?,
        }
    }
}

/// Starts a new compound; the old one loses the counts that no block holds.
fn replace(node: NodeIndex, full: Full) -> Result<(), Exhausted> {
    let start = spare_or_fresh(node)?;
    match BUMP.replace(full, start) {
        Ok(Some(old)) => {
            if let Some(place) = region::locate(old.address)
                && place.slice.head(place.compound()).lower(old.uncut) == Left::Empty
            {
                EMPTY.push(place.slice.base() + place.compound().offset(), mem::link);
            }
        }
        Ok(None) => {}
        // Another handler was faster; its compound serves.
        Err(()) => EMPTY.push(start, mem::link),
    }
    Ok(())
}

/// The start of a compound with all its counts, for the handlers alone.
fn spare_or_fresh(node: NodeIndex) -> Result<usize, Exhausted> {
    // Acquire: its last users' writes come before the new ones.
    let spare = SPARE.swap(0, Ordering::Acquire);
    if let Some(place) = region::locate(spare) {
        place.slice.head(place.compound()).begin_count(BLOCKS_MAX);
        return Ok(spare);
    }
    let slice = region::slice(node);
    let fresh = slice.take_fresh(1)?;
    let head = slice.head(fresh);
    head.begin_count(BLOCKS_MAX);
    head.transit(State::Unused, State::Emergency);
    Ok(slice.base() + fresh.offset())
}

/// Keeps one empty compound for the handlers and gives back the others: in a slow path.
fn keep_or_retire(slice: &Slice, id: CompoundId) {
    let start = slice.base() + id.offset();
    // Release: see `spare_or_fresh`.
    if SPARE.compare_exchange(0, start, Ordering::Release, Ordering::Relaxed).is_err() {
        slice.put(id, 1);
    }
}

/// Gives back the compound that is kept for the handlers.
pub(crate) fn trim() {
    if let Some(place) = region::locate(SPARE.swap(0, Ordering::Acquire)) {
        place.slice.put(place.compound(), 1);
    }
}

/// Gives back the empty compounds that handlers left: in a slow path.
pub(crate) fn sweep() {
    EMPTY.take_all(mem::link, |start| {
        if let Some(place) = region::locate(start) {
            keep_or_retire(place.slice, place.compound());
        }
    });
}

fn header(block: usize) -> &'static Header {
    // SAFETY: the address before a block of an emergency compound is inside that compound, which is
    // writable, and aligned to 16 as the block is.
    unsafe { mem::record(block - HEADER_BYTES) }
}

fn write_header(block: usize, bytes: usize) {
    header(block).mark.store(!(block as u64), Ordering::Relaxed);
    header(block).bytes.store(bytes as u64, Ordering::Relaxed);
}

/// Usable bytes of the block at `place`; aborts when none starts there.
#[expect(clippy::cast_possible_truncation, reason = "it was a usize")]
pub(crate) fn usable(place: &Place) -> usize {
    let address = place.slice.base() + place.offset;
    if !address.is_multiple_of(16) || place.offset.is_multiple_of(COMPOUND_BYTES) {
        not_a_start(address);
    }
    if header(address).mark.load(Ordering::Relaxed) != !(address as u64) {
        not_a_start(address);
    }
    match header(address).bytes.load(Ordering::Relaxed) {
        0 => misuse(Fault::DoubleFree, address),
        bytes => bytes as usize,
    }
}

/// Takes back the block at `place`: in a slow path, not in a handler's.
pub(crate) fn give(place: &Place) {
    let address = place.slice.base() + place.offset;
    usable(place);
    if header(address).bytes.swap(0, Ordering::Relaxed) == 0 {
        misuse(Fault::DoubleFree, address);
    }
    let id: CompoundId = place.compound();
    if place.slice.head(id).lower(1) == Left::Empty {
        keep_or_retire(place.slice, id);
    }
}
