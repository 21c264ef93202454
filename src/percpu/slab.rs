//! The slab's memory: header of tops and limits, then the stacks (drawn in [`crate::sys::arch`]).
#![allow(unsafe_code, reason = "slabs are words at computed addresses")]

use super::division::Division;
use crate::base::config::{ROOM_SLABS, SLAB_BYTES_LEAST, SLAB_BYTES_MAX};
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicU32, AtomicUsize, Ordering};
use crate::region::{self, Slice};
use crate::sys::arch::{
    SLAB_BASE_OFFSET, SLAB_LIMITS_OFFSET, SLAB_REGION_OFFSET, SLAB_RUNS_OFFSET, STACKS,
};
use crate::sys::mem;

/// Bytes before the stacks.
pub(super) const HEADER_BYTES: usize = 4096;

/// The slab's header, as the sections see it.
#[repr(C)]
#[derive(Debug)]
struct Header {
    tops: [AtomicUsize; STACKS],
    limits: [AtomicUsize; STACKS],
    base: AtomicUsize,
    runs: AtomicUsize,
    heap_bytes: AtomicUsize,
    generation: AtomicUsize,
    node: AtomicU32,
    cpu: AtomicU32,
    region: AtomicUsize,
    region_bytes: AtomicUsize,
    slice_shift: AtomicUsize,
}

/// A slab, by its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slab(pub(super) usize);

impl Slab {
    /// Bytes of a slab's area: the same for all, so that each can be divided in any way.
    fn bytes() -> usize {
        let geometry = region::geometry();
        let room = geometry.room_end - geometry.room;
        (room / ROOM_SLABS).clamp(SLAB_BYTES_LEAST, SLAB_BYTES_MAX)
    }

    /// Words of a slab's stacks.
    pub(super) fn words() -> usize {
        (Self::bytes() - HEADER_BYTES) / 8
    }

    /// The slab that always misses, on a zeroed page.
    pub(super) fn build_miss(address: usize) -> Self {
        let slab = Self(address);
        // All stacks end a pop at the null word that ends the header, and none has room.
        let end = address + HEADER_BYTES;
        for stack in 0..STACKS {
            slab.header().tops[stack].store(end, Ordering::Relaxed);
            slab.header().limits[stack].store(end, Ordering::Relaxed);
        }
        slab
    }

    /// Room for a slab on a node.
    pub(super) fn room(slice: &Slice) -> Option<Self> {
        slice.room(Self::bytes()).ok().map(Self)
    }

    /// Makes this an empty slab for a CPU of node `node`, divided as `division` says; `generation`
    /// counts the slabs the CPU has had.  Nobody else uses the slab.
    pub(super) fn divide(
        self,
        slice: &Slice,
        division: &Division,
        (node, cpu): (NodeIndex, CpuId),
        generation: usize,
    ) {
        let header = self.header();
        let mut at = self.0 + HEADER_BYTES;
        for stack in 0..STACKS {
            // SAFETY: the word is inside the slab's area, which is metadata that stays.
            unsafe { mem::record::<AtomicUsize>(at) }.store(0, Ordering::Relaxed);
            let begin = at + 8;
            at = begin + division.capacity(stack) * 8;
            header.tops[stack].store(begin, Ordering::Relaxed);
            header.limits[stack].store(at, Ordering::Relaxed);
        }
        debug_assert!(at <= self.0 + Self::bytes());
        header.base.store(slice.base(), Ordering::Relaxed);
        header.runs.store(region::geometry().runs(), Ordering::Relaxed);
        header.heap_bytes.store(region::geometry().heap_classes, Ordering::Relaxed);
        header.generation.store(generation, Ordering::Relaxed);
        header.node.store(u32::try_from(node.get()).unwrap_or(0), Ordering::Relaxed);
        header.cpu.store(cpu.0, Ordering::Relaxed);
        let slices = region::slices();
        header.region.store(slices.start, Ordering::Relaxed);
        header.region_bytes.store(slices.len(), Ordering::Relaxed);
        header.slice_shift.store(region::geometry().shift(), Ordering::Relaxed);
    }

    fn header(self) -> &'static Header {
        // SAFETY: a slab is at least a page of zeroed metadata that stays; all its words are atomics.
        unsafe { mem::record(self.0) }
    }

    /// Takes all objects of one stack out, in place.
    ///
    /// # Safety
    /// No section uses the slab, and none will before it is flipped in again.
    pub(super) unsafe fn take_stack(self, stack: usize) -> &'static mut [usize] {
        let header = self.header();
        let begin = self.begin(stack);
        let top = header.tops[stack].swap(begin, Ordering::Relaxed);
        let first = core::ptr::with_exposed_provenance_mut(begin);
        // SAFETY: the words from begin to top were pushed, and the slab is the caller's alone.
        unsafe { core::slice::from_raw_parts_mut(first, (top - begin) / 8) }
    }

    /// Objects on one stack, at some moment.
    pub(super) fn len(self, stack: usize) -> usize {
        self.header().tops[stack].load(Ordering::Relaxed).saturating_sub(self.begin(stack)) / 8
    }

    /// The objects on one stack, at some moment; a section that runs meanwhile may make them others.
    pub(super) fn peek(self, stack: usize) -> impl Iterator<Item = usize> {
        let begin = self.begin(stack);
        (0..self.len(stack)).map(move |index| {
            // SAFETY: from a stack's begin to its top are words of the slab's area, which is metadata
            // that stays.
            let word: &AtomicUsize = unsafe { mem::record(begin + index * 8) };
            word.load(Ordering::Relaxed)
        })
    }

    /// Where a stack begins, its top, and where it is full.
    #[cfg(test)]
    pub(super) fn bounds(self, stack: usize) -> [usize; 3] {
        let header = self.header();
        let [top, limit] =
            [&header.tops, &header.limits].map(|words| words[stack].load(Ordering::Relaxed));
        [self.begin(stack), top, limit]
    }

    fn begin(self, stack: usize) -> usize {
        let before =
            stack.checked_sub(1).map(|before| self.header().limits[before].load(Ordering::Relaxed));
        before.unwrap_or(self.0 + HEADER_BYTES) + 8
    }
}

const _: () = assert!(core::mem::offset_of!(Header, limits) == SLAB_LIMITS_OFFSET);
const _: () = assert!(core::mem::offset_of!(Header, base) == SLAB_BASE_OFFSET);
const _: () = assert!(core::mem::offset_of!(Header, runs) == SLAB_RUNS_OFFSET);
const _: () = assert!(core::mem::offset_of!(Header, region) == SLAB_REGION_OFFSET);
const _: () = assert!(core::mem::offset_of!(Header, region_bytes) == SLAB_REGION_OFFSET + 8);
const _: () = assert!(core::mem::offset_of!(Header, slice_shift) == SLAB_REGION_OFFSET + 16);
const _: () = assert!(size_of::<Header>() < HEADER_BYTES);
