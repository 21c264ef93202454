//! Memory for signal handlers that interrupted their own thread in a slow path: no lock is taken.
//!
//! Blocks are cut from a compound of their own by moving one word, and each holds a count of its
//! compound; the compound goes back when the last of them is freed by a normal slow path.  A header
//! before each block tells its length.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | E1 `next` compare-exchange | AcqRel | E1 | the compound's head is written before others cut from it |
#![allow(unsafe_code, reason = "block headers in memory that no one else has yet")]

use super::large;
use super::runs::retire;
use crate::base::config::COMPOUND_BYTES;
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::region::{self, Exhausted, Left, Place, State};
use crate::sys::fatal::{Fault, misuse, not_a_start};
use crate::sys::mem;

/// Where the next block starts; 0 before the first.
static NEXT: AtomicUsize = AtomicUsize::new(0);

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
        let next = NEXT.load(Ordering::Acquire);
        let block = (next + HEADER_BYTES).next_multiple_of(align.max(16));
        let end = block + bytes.max(1);
        if next != 0 && end < compound_end(next) && raise(next) {
            // E1
            if NEXT.compare_exchange(next, end, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                write_header(block, bytes.max(1));
                return Ok(block);
            }
            let place = region::locate(next).ok_or(Exhausted)?;
            lower(&place);
        } else {
            replace(node, next)?;
        }
    }
}

/// Starts a new compound; the old one loses the count that kept it current.
fn replace(node: NodeIndex, old: usize) -> Result<(), Exhausted> {
    let slice = region::slice(node);
    let fresh = slice.take_fresh(1)?;
    let head = slice.head(fresh);
    head.begin_count(1);
    head.transit(State::Unused, State::Emergency);
    let start = slice.base() + fresh.offset();
    // E1
    if NEXT.compare_exchange(old, start, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        // Another handler was faster; its compound serves.  This one is lost, which happens at most
        // once a handler that interrupts a handler here.
        return Ok(());
    }
    if let Some(place) = region::locate(old) {
        // Never retired here, under no lock: an empty one waits for good, at most one a compound used.
        place.slice.head(place.compound()).lower(1);
    }
    Ok(())
}

fn compound_end(address: usize) -> usize {
    (address / COMPOUND_BYTES + 1) * COMPOUND_BYTES
}

fn raise(address: usize) -> bool {
    region::locate(address).is_some_and(|place| place.slice.head(place.compound()).raise(1))
}

fn lower(place: &Place) {
    place.slice.head(place.compound()).lower(1);
}

fn header(block: usize) -> &'static Header {
    // SAFETY: the address before a block of an emergency compound is inside that compound, which is
    // writable, and aligned to 16 as the block is.
    unsafe { mem::record(block - HEADER_BYTES) }
}

fn write_header(block: usize, bytes: usize) {
    header(block).mark.store(!(block as u64), Ordering::Relaxed);
    header(block).bytes.store(bytes as u64, Ordering::Release);
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
    match header(address).bytes.load(Ordering::Acquire) {
        0 => misuse(Fault::DoubleFree, address),
        bytes => bytes as usize,
    }
}

/// Takes back the block at `place`: in a slow path, not in a handler's.
pub(crate) fn give(place: &Place) {
    let address = place.slice.base() + place.offset;
    usable(place);
    if header(address).bytes.swap(0, Ordering::AcqRel) == 0 {
        misuse(Fault::DoubleFree, address);
    }
    let id: CompoundId = place.compound();
    if place.slice.head(id).lower(1) == Left::Empty {
        retire(place.slice, id);
    }
}
