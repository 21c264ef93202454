//! Pages moved from block to block, and the seams that this leaves.
//!
//! A moved page keeps the kernel's idea of where it was first, so the map that it comes with never merges
//! with its neighbours'.  A *seam* is a place where two maps may meet: bit c of the map of seams says that
//! one may lie behind compound c.  A move makes at most two, at the ends of the range that it comes to, and
//! ends those within; one call moves a range without a seam.  The place that pages came from stays mapped as
//! it was, and reads zeros (`MREMAP_DONTUNMAP`): no hole opens that other maps could land in.
#![allow(unsafe_code, reason = "blocks that a caller owns are moved or copied")]

use super::free::Map;
use super::geometry;
use super::slice::Slice;
use crate::base::config::{COMPOUND_BYTES, MAPS_FRACTION};
use crate::base::ids::CompoundId;
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::mem;

/// Seams in all slices.
static SEAMS: AtomicU32 = AtomicU32::new(0);

impl Slice {
    /// Brings the first `bytes` of a block to a block that is at least as long; both are the caller's.
    /// True: all of them were moved, and the old block has no pages any more.
    pub(crate) fn bring(&self, from: CompoundId, to: CompoundId, bytes: usize) -> bool {
        let mut moved = true;
        let mut done = 0;
        while done < bytes {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a slice has at most 2^19 compounds"
            )]
            let [at, rest] =
                [done, bytes - done].map(|bytes| bytes.div_ceil(COMPOUND_BYTES) as u32);
            let (from, to) = (CompoundId(from.0 + at), CompoundId(to.0 + at));
            let last = self.next_set(from.0, from.0 + rest - 1, Map::seams);
            let count = last + 1 - from.0;
            let piece = count as usize * COMPOUND_BYTES;
            if !self.move_piece(from, to, count) {
                moved = false;
                let [from, to] = [from, to].map(|id| self.base() + id.offset());
                // SAFETY: both blocks are the caller's, apart, and that long; `bytes` are whole pages.
                unsafe { mem::copy_sparse(from, to, piece.min(bytes - done)) };
            }
            done += piece;
        }
        moved
    }

    /// Moves the pages of compounds without a seam among them.
    fn move_piece(&self, from: CompoundId, to: CompoundId, count: u32) -> bool {
        let most = mem::maps_max() / MAPS_FRACTION;
        if SEAMS.load(Ordering::Relaxed) + 2 > most {
            return false;
        }
        let [old, new] = [from, to].map(|id| self.base() + id.offset());
        let moved = mem::move_pages(old, new, count as usize * COMPOUND_BYTES).is_ok();
        if moved {
            self.note_seams(to.0, count);
        }
        moved
    }

    fn note_seams(&self, first: u32, count: u32) {
        let last = first + count - 1;
        if first < last {
            self.for_each_map(first, last - first, |map, mask| {
                let ended = map.seams.fetch_and(!mask, Ordering::Relaxed) & mask;
                SEAMS.fetch_sub(ended.count_ones(), Ordering::Relaxed);
            });
        }
        // Before the first compound there is metadata: another map in any case.
        for number in [first - 1, last] {
            if number >= geometry().first {
                let bit = 1 << (number % 64);
                let before = self.map(number).seams.fetch_or(bit, Ordering::Relaxed) & bit;
                SEAMS.fetch_add(u32::from(before == 0), Ordering::Relaxed);
            }
        }
    }
}

/// Places in all slices where pages that were moved may meet others.
pub(crate) fn seams() -> u32 {
    SEAMS.load(Ordering::Relaxed)
}
