//! A checked block: what its user asked for, and a record behind it.
//!
//! ```text
//! byte 0          size bytes: the user's; FRESH at first, FREED after the free
//! byte size       GUARD, up to the record, but at most CHECK_FILL_BYTES of it
//! byte room       the record: size, and the seal, 64 bits each
//! ```
//! The seal says whether the block is live, freed, or neither, and carries the address and the size: bytes
//! that were written over it make none.  It changes from live to freed once, by a compare-exchange: of two
//! threads that free one block, one is told.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | seal store in `begin` | Release | loads of the seal | who sees it live sees the guard, the look at exit among them |
//! | seal compare-exchange in `end` | AcqRel | itself | who frees sees what the user wrote |
#![allow(unsafe_code, reason = "bytes and records at computed addresses")]

use core::ops::Range;

use crate::base::config::{CHECK_FILL_BYTES, CHECK_FREED_BYTES};
use crate::base::sync::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use crate::sys::mem;

/// What fresh memory holds: as a pointer, no address.
const FRESH: u8 = 0xa5;
/// What freed memory holds: as a pointer, no address.
const FREED: u8 = 0xdf;
/// What stands behind a block.
const GUARD: u8 = 0xc9;

const LIVE: usize = 0x6c69_7665_b10c_5ea1;
const DEAD: usize = 0x6465_6164_b10c_5ea1;

/// Stands at a block's end.
#[repr(C)]
#[derive(Debug)]
struct Record {
    size: AtomicUsize,
    seal: AtomicUsize,
}

const RECORD_BYTES: usize = size_of::<Record>();

/// What a block's record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seal {
    /// In use, of so many bytes.
    Live(usize),
    /// Freed, of so many bytes.
    Dead(usize),
    /// Neither, since nobody has begun it yet, or not any more.
    Blank,
    /// Overwritten.
    Broken,
}

/// A block's address, and the bytes in front of its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) address: usize,
    pub(super) room: usize,
}

impl Block {
    /// Bytes to ask for, so that a block of `size` bytes fits: a link (see [`mem::link`]) at least.
    pub(super) fn padded(size: usize) -> Option<usize> {
        size.max(8).checked_add(RECORD_BYTES)?.checked_next_multiple_of(16)
    }

    /// The block at `address`, of `bytes` bytes with its record.
    pub(super) const fn of(address: usize, bytes: usize) -> Self {
        Self { address, room: bytes - RECORD_BYTES }
    }

    /// Bytes that the block takes.
    pub(super) const fn bytes(&self) -> usize {
        self.room + RECORD_BYTES
    }

    fn record(&self) -> &'static Record {
        // SAFETY: the record is inside the block, which is writable, at a multiple of 16, as blocks and
        // their lengths are.
        unsafe { mem::record(self.address + self.room) }
    }

    fn sealed(&self, kind: usize, size: usize) -> usize {
        self.address ^ size.rotate_left(32) ^ kind
    }

    /// What the record says.
    pub(super) fn seal(&self) -> Seal {
        let seal = self.record().seal.load(Ordering::Acquire);
        let size = self.record().size.load(Ordering::Relaxed);
        if seal == 0 {
            Seal::Blank
        } else if size > self.room {
            Seal::Broken
        } else if seal == self.sealed(LIVE, size) {
            Seal::Live(size)
        } else if seal == self.sealed(DEAD, size) {
            Seal::Dead(size)
        } else {
            Seal::Broken
        }
    }

    /// Starts the block's life: it is the caller's alone.
    pub(super) fn begin(&self, size: usize) {
        self.record().size.store(size, Ordering::Relaxed);
        self.fill(GUARD, size..self.room.min(size + CHECK_FILL_BYTES));
        self.record().seal.store(self.sealed(LIVE, size), Ordering::Release);
    }

    /// Fills the start of the user's bytes, before the block's life starts.
    pub(super) fn freshen(&self, size: usize) {
        self.fill(FRESH, 0..size.min(CHECK_FILL_BYTES));
    }

    /// Ends the life of a block of `size` bytes.  False: it has ended already.
    pub(super) fn end(&self, size: usize) -> bool {
        let [live, dead] = [LIVE, DEAD].map(|kind| self.sealed(kind, size));
        let seal = &self.record().seal;
        seal.compare_exchange(live, dead, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Fills what the user had: the block's life has ended.
    pub(super) fn bury(&self, size: usize) {
        self.fill(FREED, 0..size.min(CHECK_FREED_BYTES));
    }

    /// Leaves no record: the memory goes back.
    pub(super) fn forget(&self) {
        self.record().seal.store(0, Ordering::Relaxed);
    }

    /// The first byte behind `size` that was written.
    pub(super) fn overflow(&self, size: usize) -> Option<usize> {
        self.first_other(GUARD, size..self.room.min(size + CHECK_FILL_BYTES))
    }

    /// The first byte that was written since [`Block::bury`].
    pub(super) fn write_after_free(&self, size: usize) -> Option<usize> {
        self.first_other(FREED, 0..size.min(CHECK_FREED_BYTES)).or_else(|| self.overflow(size))
    }

    /// The first byte of a range inside the block that is not `expected`.
    fn first_other(&self, expected: u8, range: Range<usize>) -> Option<usize> {
        let words = range.start.next_multiple_of(8).min(range.end)..range.end / 8 * 8;
        let is_other = |&at: &usize| self.byte(at).load(Ordering::Relaxed) != expected;
        let expected = u64::from_ne_bytes([expected; 8]);
        let differs = |&at: &usize| self.word(at).load(Ordering::Relaxed) != expected;
        let [end_of_head, start_of_tail] = [words.start, words.end.max(words.start)];
        let middle = || words.step_by(8).find(differs).and_then(|at| (at..at + 8).find(is_other));
        let head = (range.start..end_of_head).find(is_other);
        head.or_else(middle).or_else(|| (start_of_tail..range.end).find(is_other))
    }

    fn byte(&self, at: usize) -> &'static AtomicU8 {
        debug_assert!(at < self.bytes());
        // SAFETY: the byte is inside the block, which stays mapped.
        unsafe { mem::record(self.address + at) }
    }

    fn word(&self, at: usize) -> &'static AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at < self.bytes());
        // SAFETY: as in `byte`; a block's address is a multiple of 16.
        unsafe { mem::record(self.address + at) }
    }

    fn fill(&self, byte: u8, range: Range<usize>) {
        // SAFETY: the range is inside the block, which nobody else uses now.
        unsafe { mem::fill(self.address + range.start, byte, range.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, CHECK_FREED_BYTES, Seal};
    use crate::base::sync::Ordering;

    #[repr(align(16))]
    struct Memory([u8; 128 << 10]);

    fn with_block(bytes: usize, test: impl Fn(&Block)) {
        extern crate std;
        let mut memory = std::boxed::Box::new(Memory([0; 128 << 10]));
        test(&Block::of(memory.0.as_mut_ptr().expose_provenance(), bytes));
    }

    fn poke(block: &Block, at: usize) {
        block.byte(at).fetch_xor(1, Ordering::Relaxed);
    }

    #[test]
    fn every_byte_behind_a_block_is_guarded() {
        with_block(96, |block| {
            for size in 0..=block.room {
                for at in size..block.bytes() {
                    block.begin(size);
                    assert_eq!((block.seal(), block.overflow(size)), (Seal::Live(size), None));
                    poke(block, at);
                    let seen = block.overflow(size) == Some(at) || block.seal() == Seal::Broken;
                    assert!(seen, "byte {at} behind {size}");
                }
            }
        });
    }

    #[test]
    fn every_byte_of_a_freed_block_is_watched() {
        for size in [0, 1, 7, 8, 63, 64, 80] {
            with_block(96, |block| {
                for at in 0..block.room {
                    block.begin(size);
                    assert!(block.end(size) && !block.end(size));
                    block.bury(size);
                    assert_eq!(block.seal(), Seal::Dead(size));
                    assert_eq!(block.write_after_free(size), None);
                    poke(block, at);
                    assert_eq!(block.write_after_free(size), Some(at));
                }
            });
        }
    }

    #[test]
    fn a_long_block_is_watched_at_its_start_and_behind_its_end() {
        with_block(100 << 10, |block| {
            let size = 80 << 10;
            for at in [0, 1, CHECK_FREED_BYTES - 1, size, size + 4095] {
                block.begin(size);
                block.bury(size);
                poke(block, at);
                assert_eq!(block.write_after_free(size), Some(at));
            }
        });
    }

    #[test]
    fn a_padded_size_holds_a_link_and_a_record() {
        assert_eq!(Block::padded(0), Some(32));
        assert_eq!(Block::padded(16), Some(32));
        assert_eq!(Block::padded(17), Some(48));
        assert_eq!(Block::padded(usize::MAX - 8), None);
    }
}
