//! `HOMENODE_CHECK=full`: every call checks its block, for the price of the fast path.
//!
//! In this mode rseq is off, so every call is a slow path and ends here, and an object that is free is free
//! in its span.  Each block has a record behind it (see [`block`]); a freed one is filled and held back for
//! a while (see [`quarantine`]).
//!
//! | fault | named |
//! |---|---|
//! | double free, free in the middle, odd pointer, no block, a size that is too large | by the call |
//! | realloc or `malloc_usable_size` of a freed block | by the call |
//! | write past the end of a live block | when it is freed, resized or measured, or at exit |
//! | write to a freed block, or past its end | by the next call, if the block is among the last ones freed; when it leaves the quarantine; at exit |
//!
//! A block of `GlobalAlloc` of up to 1 KiB is known by its class alone, and ends where its class does.
//! Blocks over [`CHECK_HELD_BYTES_EACH`], and those that signal handlers took amid a slow path, go back at once.
#![allow(unsafe_code, reason = "blocks are raw memory at this layer's edge")]

mod block;
mod fault;
mod quarantine;

pub(super) use fault::{Call, wrong_size};

use self::block::{Block, Seal};
use super::busy::Busy;
use super::{alloc_large, block_bytes, class_at, deferred, free_here, prepare, start as starting};
use crate::base::classes::{CLASS_BYTES_MAX, Class};
use crate::base::config::{CHECK_HELD_BYTES_EACH, COMPOUND_BYTES};
use crate::base::ids::CompoundId;
use crate::base::sync::{AtomicU32, Ordering, spin_loop};
use crate::pageheap::large::{self, Want};
use crate::region::{self, Place, State};
use crate::slab::{self, Refusal};
use crate::sys::fatal::{Fault, misuse};
use crate::sys::{mem, process};

/// What `HOMENODE_CHECK` says: [`UNKNOWN`] before the start.
static MODE: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const OFF: u32 = 1;
const FULL: u32 = 2;

/// Blocks that are out and may have no record yet.
static BEGINNING: AtomicU32 = AtomicU32::new(0);

/// Notes the setting.
pub(super) fn start(full: bool) {
    MODE.store(if full { FULL } else { OFF }, Ordering::Relaxed);
}

/// True when every call checks; starts the allocator, whose settings say it.
pub(super) fn is_on() -> bool {
    match MODE.load(Ordering::Relaxed) {
        OFF => false,
        FULL => true,
        _ => ask(),
    }
}

#[cold]
fn ask() -> bool {
    // A handler that interrupts the start gets null anyway.
    let Some(_busy) = Busy::enter() else { return false };
    starting::ensure() && is_full()
}

/// True when every call checks, as far as it is known.
pub fn is_full() -> bool {
    MODE.load(Ordering::Relaxed) == FULL
}

/// The block that starts at `place`; aborts when none does.
fn find(place: &Place) -> Block {
    Block::of(place.slice.base() + place.offset, block_bytes(place))
}

/// The block at `place` and its size; aborts unless it is live, and nobody wrote past its end.
fn live(place: &Place, call: Call) -> (Block, usize) {
    let block = find(place);
    let out = class_at(place).map_or(Ok(()), |class| slab::is_out(place, class));
    match out {
        Ok(()) => {}
        Err(Refusal::NeverOut) => misuse(Fault::NeverAllocated, block.address),
        Err(Refusal::NotOut) => misuse(Fault::DoubleFree, block.address),
    }
    match block.seal() {
        Seal::Live(size) => {
            if let Some(at) = block.overflow(size) {
                fault::overflown(block.address, size, at, call);
            }
            (block, size)
        }
        Seal::Dead(size) => fault::freed(block.address, size, call),
        Seal::Blank | Seal::Broken if quarantine::holds(block.address) => {
            fault::overrun(block.address, block.room)
        }
        Seal::Blank | Seal::Broken => fault::overflown_far(block.address, block.room, call),
    }
}

/// Hands out a block, cleared if that is wanted; null when there is no memory.
pub(super) fn alloc(size: usize, align: usize, zeroed: bool) -> *mut u8 {
    alloc_from(size, zeroed, |padded| match Class::of_layout(padded, align) {
        Some(class) => (super::alloc_class(class), false),
        None => alloc_large(padded, align, Want::Block),
    })
}

/// As [`alloc`], of memory that `take` hands out by its length, and whether it is all zeros.
pub(super) fn alloc_from(
    size: usize,
    zeroed: bool,
    take: impl FnOnce(usize) -> (*mut u8, bool),
) -> *mut u8 {
    if let Some(_busy) = Busy::enter() {
        quarantine::look();
    }
    let none = core::ptr::null_mut();
    let Some(padded) = Block::padded(size) else { return none };
    BEGINNING.fetch_add(1, Ordering::Relaxed);
    let (raw, is_zero) = take(padded);
    if let Some(place) = region::locate(raw.expose_provenance()) {
        let block = find(&place);
        if !zeroed {
            block.freshen(size);
        } else if !is_zero {
            clear(&block, size);
        }
        block.begin(size);
    }
    // Release: who sees that nobody begins a block sees the records.
    BEGINNING.fetch_sub(1, Ordering::Release);
    raw
}

fn clear(block: &Block, size: usize) {
    if size <= CLASS_BYTES_MAX || !large::empty(block.address) {
        // SAFETY: the block is fresh, at least `size` bytes long, and nobody else's.
        unsafe { mem::zero(block.address, size) };
    }
}

/// Hands out an object that the caller knows by its class.
pub(super) fn alloc_class(class: Class) -> *mut u8 {
    let size = class.shape().size as usize;
    alloc(size, size & size.wrapping_neg(), false)
}

/// Takes back the block at `place`.
pub(super) fn free(place: &Place) {
    let busy = Busy::enter();
    if busy.is_some() {
        process::notice_fork();
        quarantine::look();
    }
    let (block, size) = live(place, Call::Free);
    if !block.end(size) {
        fault::freed(block.address, size, Call::Free);
    }
    match busy {
        Some(_busy) => bury(place, &block, size),
        None => deferred::push(block.address),
    }
}

/// Takes back, in a slow path, a block that a handler freed.
pub(super) fn free_deferred(place: &Place) {
    let block = find(place);
    match block.seal() {
        Seal::Dead(size) => bury(place, &block, size),
        _ => fault::overrun(block.address, block.room),
    }
}

/// Holds back a block whose life has ended, and gives back those that were held for long.
fn bury(place: &Place, block: &Block, size: usize) {
    block.bury(size);
    let is_handlers = class_at(place).is_none() && !large::starts_at(place);
    if is_handlers || block.bytes() > CHECK_HELD_BYTES_EACH || !quarantine::put(block) {
        give_back(block);
    }
    release(false);
}

/// Gives back what has been held for long, or all; in a slow path.
pub(super) fn release(all: bool) {
    while let Some(block) = quarantine::take(all) {
        give_back(&block);
    }
}

fn give_back(block: &Block) {
    block.forget();
    if let Some(place) = region::locate(block.address) {
        free_here(&place);
    }
}

/// Bytes of the block at `place`, which are those that were asked for.
pub(super) fn usable(place: &Place, call: Call) -> usize {
    live(place, call).1
}

/// Gives the block at `object` another size, in place or at a new address; null when there is no memory,
/// and the old block stays.
///
/// # Safety
/// `object` was handed out, and is live: its length was just asked for.
pub(super) unsafe fn realloc(object: *mut u8, usable: usize, size: usize, align: usize) -> *mut u8 {
    if resize(object.expose_provenance(), size) {
        return object;
    }
    let moved = alloc(size, align, false);
    if moved.is_null() {
        // A shrink that finds no smaller block is served by the one it has.
        return if size <= usable { object } else { moved };
    }
    // SAFETY: both blocks are live and apart, and at least that long; the caller gives the old one up.
    unsafe { super::replace(object, moved, usable.min(size)) };
    moved
}

/// Gives a large block another size where it is.  All others move, so that stale pointers show.
#[cold]
pub(super) fn resize(address: usize, size: usize) -> bool {
    let Some(place) = region::locate(address).filter(large::starts_at) else { return false };
    let Some(padded) = Block::padded(size).filter(|_| size > CLASS_BYTES_MAX) else { return false };
    live(&place, Call::Realloc);
    let Some(_busy) = Busy::enter() else { return false };
    let is_done = prepare() && large::resize(&place, padded);
    if is_done {
        find(&place).begin(size);
    }
    is_done
}

/// Looks at all blocks when the process ends.
extern "C" fn at_exit() {
    if !is_full() {
        return;
    }
    let Some(_busy) = Busy::enter() else { return };
    process::notice_fork();
    quarantine::look_at_all();
    for (_, slice) in region::open_slices() {
        slab::objects_out(slice, look);
        let compounds = (region::geometry().first..slice.frontier()).map(CompoundId);
        let blocks = compounds.filter(|&id| slice.head(id).state() == State::LargeFirst);
        blocks.for_each(|id| look(slice.base() + id.0 as usize * COMPOUND_BYTES));
    }
}

/// Looks at a block that other threads may be taking or giving back meanwhile: a fault is what stays while
/// nobody begins a block.
fn look(address: usize) {
    const LOOKS: u32 = 4;
    const PAUSES: u32 = 10_000;
    let Some(place) = region::locate(address) else { return };
    for _ in 0..LOOKS {
        if is_whole(&place) {
            return;
        }
        (0..PAUSES).for_each(|_| spin_loop());
        // In a child of fork there may be some that nobody ends.
        if BEGINNING.load(Ordering::Acquire) > 0 {
            return;
        }
    }
    live(&place, Call::Exit);
}

/// True unless a block starts at `place` that was written past its end.
fn is_whole(place: &Place) -> bool {
    let address = place.slice.base() + place.offset;
    let block = match class_at(place) {
        Some(class) if slab::is_out(place, class).is_ok() => {
            Block::of(address, class.shape().size as usize)
        }
        None if large::starts_at(place) => Block::of(address, large::usable(place)),
        _ => return true,
    };
    match block.seal() {
        Seal::Live(size) => block.overflow(size).is_none(),
        Seal::Dead(_) | Seal::Blank => true,
        Seal::Broken => false,
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
