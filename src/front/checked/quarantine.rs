//! The quarantine: freed blocks that are held back, first in, first out.
//!
//! A ring of addresses in the first node's metadata, under a lock.  An address is stored before it is
//! counted, and uncounted after it is read, so a child of fork finds the ring whole; what its lost threads
//! had taken out stays out.
#![allow(unsafe_code, reason = "the ring stands in a slice's metadata")]

use super::block::Block;
use super::fault::{overrun, written};
use super::{Seal, find};
use crate::base::config::{CHECK_HELD, CHECK_HELD_BYTES, CHECK_LOOK_BYTES};
use crate::base::ids::NodeIndex;
use crate::base::sync::{AtomicUsize, Ordering};
use crate::region;
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::mem;

/// The ring; all words but `slots` change under the lock.
#[derive(Debug)]
struct Ring {
    lock: Lock,
    /// Address of [`CHECK_HELD`] words; 0 before the first block.
    slots: AtomicUsize,
    /// Blocks that were ever taken out.
    out: AtomicUsize,
    /// Blocks that were ever put in.
    put: AtomicUsize,
    /// Bytes of the blocks inside.
    bytes: AtomicUsize,
}

static RING: Ring = Ring {
    lock: Lock::new(),
    slots: AtomicUsize::new(0),
    out: AtomicUsize::new(0),
    put: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
};

/// Puts a block in.  False: there is no memory for a ring.
pub(super) fn put(block: &Block) -> bool {
    let slice = region::slice(NodeIndex::ZERO);
    if slice.open().is_err()
        || slice.room_once(&RING.slots, CHECK_HELD * size_of::<usize>()).is_err()
    {
        return false;
    }
    let _held = RING.enter();
    let number = RING.put.load(Ordering::Relaxed);
    if number - RING.out.load(Ordering::Relaxed) >= CHECK_HELD {
        // Other threads put theirs in faster than they take the oldest out.
        return false;
    }
    RING.slot(number).store(block.address, Ordering::Relaxed);
    RING.put.store(number + 1, Ordering::Relaxed);
    RING.bytes.store(RING.bytes.load(Ordering::Relaxed) + block.bytes(), Ordering::Relaxed);
    true
}

/// Takes the oldest block out; one that was written ends the program.  None: `all` are out, or as many as
/// are too much.
pub(super) fn take(all: bool) -> Option<Block> {
    let block = {
        let _held = RING.enter();
        let number = RING.out.load(Ordering::Relaxed);
        let count = RING.put.load(Ordering::Relaxed) - number;
        let bytes = RING.bytes.load(Ordering::Relaxed);
        let is_full = count >= CHECK_HELD || bytes > CHECK_HELD_BYTES;
        if count == 0 || !(all || is_full) {
            return None;
        }
        let block = RING.block(number)?;
        RING.out.store(number + 1, Ordering::Relaxed);
        RING.bytes.store(bytes.saturating_sub(block.bytes()), Ordering::Relaxed);
        block
    };
    inspect(&block);
    Some(block)
}

/// Looks at the block that came in last, and some before it.
pub(super) fn look() {
    look_at(CHECK_LOOK_BYTES);
}

/// Looks at all blocks.
pub(super) fn look_at_all() {
    look_at(usize::MAX);
}

fn look_at(bytes: usize) {
    if RING.slots.load(Ordering::Acquire) == 0 {
        return;
    }
    let _held = RING.enter();
    let mut left = bytes;
    let numbers = RING.out.load(Ordering::Relaxed)..RING.put.load(Ordering::Relaxed);
    for block in numbers.rev().map_while(|number| RING.block(number)) {
        inspect(&block);
        left = left.saturating_sub(block.bytes());
        if left == 0 {
            return;
        }
    }
}

/// True when the block at `address` is inside, as far as can be told without the lock.
pub(super) fn holds(address: usize) -> bool {
    let numbers = RING.out.load(Ordering::Relaxed)..RING.put.load(Ordering::Relaxed);
    numbers.into_iter().any(|number| RING.slot(number).load(Ordering::Relaxed) == address)
}

/// A block that was written after its free ends the program.
fn inspect(block: &Block) {
    let Seal::Dead(size) = block.seal() else { overrun(block.address, block.room) };
    if let Some(at) = block.write_after_free(size) {
        written(block.address, size, at);
    }
}

impl Ring {
    fn enter(&self) -> Held<'_> {
        let held = self.lock.enter(Rank::Quarantine);
        if held.orphaned() {
            let numbers = self.out.load(Ordering::Relaxed)..self.put.load(Ordering::Relaxed);
            let bytes = numbers.filter_map(|number| self.block(number)).map(|block| block.bytes());
            self.bytes.store(bytes.sum(), Ordering::Relaxed);
        }
        held
    }

    fn slot(&self, number: usize) -> &'static AtomicUsize {
        let slots = self.slots.load(Ordering::Acquire);
        // SAFETY: `put` made the words, zeroed, in metadata that stays; numbers come only after it.
        unsafe { mem::record(slots + number % CHECK_HELD * size_of::<usize>()) }
    }

    fn block(&self, number: usize) -> Option<Block> {
        region::locate(self.slot(number).load(Ordering::Relaxed)).map(|place| find(&place))
    }
}
