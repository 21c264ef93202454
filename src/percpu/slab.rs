//! The slab's memory: header of tops and limits, then the stacks (drawn in [`crate::sys::arch`]).
#![allow(unsafe_code, reason = "slabs are words at computed addresses")]

use crate::base::classes::Class;
use crate::base::config::REMOTE_OBJECTS;
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicU32, AtomicUsize, Ordering};
use crate::region::{self, Slice};
use crate::sys::arch::{
    REMOTE_STACK, SLAB_BASE_OFFSET, SLAB_LIMITS_OFFSET, SLAB_RUNS_OFFSET, STACKS,
};
use crate::sys::mem;
use crate::topo;

/// Bytes before the stacks.
const HEADER_BYTES: usize = 4096;

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
}

/// A slab, by its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slab(pub(super) usize);

impl Slab {
    /// Bytes of a slab: what its stacks hold, at most, and a null word before each.
    pub(super) fn bytes() -> usize {
        let words: usize = (0..STACKS).map(|stack| capacity(stack) + 1).sum();
        (HEADER_BYTES + words * 8).next_multiple_of(64)
    }

    /// The slab that always misses, on zeroed memory of [`Slab::bytes`] or one page.
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

    /// An empty slab for a CPU, in memory of its node; `generation` counts the slabs it has had.
    pub(super) fn build(
        slice: &Slice,
        node: NodeIndex,
        cpu: CpuId,
        generation: usize,
    ) -> Option<Self> {
        let slab = Self(slice.room(Self::bytes()).ok()?);
        let header = slab.header();
        let mut at = slab.0 + HEADER_BYTES;
        for stack in 0..STACKS {
            let begin = at + 8;
            at = begin + capacity(stack) * 8;
            header.tops[stack].store(begin, Ordering::Relaxed);
            header.limits[stack].store(at, Ordering::Relaxed);
        }
        header.base.store(slice.base(), Ordering::Relaxed);
        header.runs.store(region::geometry().runs(), Ordering::Relaxed);
        header.heap_bytes.store(region::geometry().heap_classes, Ordering::Relaxed);
        header.generation.store(generation, Ordering::Relaxed);
        header.node.store(u32::try_from(node.get()).unwrap_or(0), Ordering::Relaxed);
        header.cpu.store(cpu.0, Ordering::Relaxed);
        Some(slab)
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

/// Objects that a stack holds.
fn capacity(stack: usize) -> usize {
    if stack >= REMOTE_STACK {
        return if topo::nodes() > 1 && stack - REMOTE_STACK < topo::nodes() {
            REMOTE_OBJECTS
        } else {
            0
        };
    }
    u8::try_from(stack)
        .ok()
        .and_then(Class::from_byte)
        .map_or(0, |class| class.shape().capacity as usize)
}

const _: () = assert!(core::mem::offset_of!(Header, limits) == SLAB_LIMITS_OFFSET);
const _: () = assert!(core::mem::offset_of!(Header, base) == SLAB_BASE_OFFSET);
const _: () = assert!(core::mem::offset_of!(Header, runs) == SLAB_RUNS_OFFSET);
const _: () = assert!(size_of::<Header>() < HEADER_BYTES);
