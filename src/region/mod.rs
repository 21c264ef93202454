//! region: address space.  One slice a node; the node of an address is its slice's number.

mod compound;
mod extent;
mod free;
mod frontier;
mod geometry;
mod grow;
mod home;
mod lengthen;
mod moves;
mod seeds;
mod slice;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod tests_of_holes;

use core::cell::UnsafeCell;
use core::ops::Range;

use extent::Extent;

pub(crate) use compound::{Head, Left, State};
pub(crate) use extent::note_locked;
pub(crate) use free::keep_resident;
pub(crate) use geometry::Geometry;
pub(crate) use home::can_spread;
pub(crate) use lengthen::{bearable_step, note_left};
pub(crate) use moves::seams;
pub(crate) use slice::{Exhausted, Slice};

use crate::base::config::{
    COMPOUND_BYTES, COMPOUND_SHIFT, GROUP_BYTES, NODES_MAX, RESERVE_BYTES_MAX, RUN_SHIFT,
    SLICE_BYTES_MAX, SLICE_BYTES_MIN,
};
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::sync::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use crate::sys::{cpu, mem};
use crate::topo;

static SLICES: [Slice; NODES_MAX] = [const { Slice::new() }; NODES_MAX];
static BASE: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// [`END`] for those who ask for the class alone; 0 when they are to find none.
static CLASSES_END: AtomicUsize = AtomicUsize::new(0);
/// 1 once slices have holes (see [`extent`]): until then [`locate`] need not look at the slice's end.
static HAVE_HOLES: AtomicU32 = AtomicU32::new(0);
static GEOMETRY: Published = Published(UnsafeCell::new(Geometry::of(SLICE_BYTES_MIN, 4096)));

/// The geometry of every slice: written once at start, before anything else of this layer runs.
#[derive(Debug)]
struct Published(UnsafeCell<Geometry>);

#[expect(unsafe_code, reason = "written once, before there are readers")]
// SAFETY: `start` writes it while no other thread can be past its first allocation, which waits
// for `start` to end; afterwards it is only read.
unsafe impl Sync for Published {}

/// Where an address lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The slice.
    pub(crate) slice: &'static Slice,
    /// Its node: the address's home node.
    pub(crate) node: NodeIndex,
    /// Bytes from the slice's base.
    pub(crate) offset: usize,
}

impl Place {
    /// The compound's number in the slice.
    #[expect(clippy::cast_possible_truncation, reason = "a slice has at most 2^19 compounds")]
    pub(crate) const fn compound(&self) -> CompoundId {
        CompoundId((self.offset >> COMPOUND_SHIFT) as u32)
    }

    /// True at a compound's first byte.
    pub(crate) const fn starts_compound(&self) -> bool {
        self.offset.is_multiple_of(COMPOUND_BYTES)
    }

    /// The run's number in the slice.
    pub(crate) const fn run(&self) -> usize {
        self.offset >> RUN_SHIFT
    }
}

/// Reserves a slice for each node, the largest that the system grants up to `slice_bytes_max`.
/// False: not even the smallest.
// Apart, so that the other parts of the start do not run above its frame.
#[inline(never)]
pub(crate) fn start(slice_bytes_max: usize) -> bool {
    if BASE.load(Ordering::Relaxed) != 0 {
        return true;
    }
    let nodes = topo::nodes();
    let page = cpu::page_bytes();
    let share =
        (RESERVE_BYTES_MAX / nodes.next_power_of_two()).min(SLICE_BYTES_MAX).min(slice_bytes_max);
    let left = cpu::address_space_left().filter(|left| left / 2 / nodes < share);
    if let Some(left) = left
        && let Some(base) = seeds::sow(nodes, 1 << share.ilog2(), left, page)
    {
        HAVE_HOLES.store(1, Ordering::Relaxed);
        place(base, nodes, seeds::seeds());
        return true;
    }
    let share = left.map_or(share, |left| left / 2 / nodes);
    let mut bytes = 1 << share.max(SLICE_BYTES_MIN).ilog2();
    while bytes >= SLICE_BYTES_MIN {
        if reserve(nodes, Geometry::of(bytes, page)) {
            return true;
        }
        bytes /= 2;
    }
    false
}

/// Reserves `total` bytes at a multiple of `align`.  The place below this program or library, which the
/// system chose at random, is usually free: one guess saves cutting off ends.
fn reserve_aligned(total: usize, align: usize) -> Option<usize> {
    let guess = mem::module_address().saturating_sub(total + align) / align * align;
    let start = mem::reserve(guess, total).ok()?;
    if start.is_multiple_of(align) {
        return Some(start);
    }
    mem::release(start, total);
    let start = mem::reserve(0, total + align).ok()?;
    let base = start.next_multiple_of(align);
    mem::release(start, base - start);
    mem::release(base + total, start + align - base);
    Some(base)
}

/// Compounds are aligned to themselves, groups of them where there is room for a group.
fn align_of(slice_bytes: usize) -> usize {
    if slice_bytes > GROUP_BYTES { GROUP_BYTES } else { COMPOUND_BYTES }
}

fn reserve(nodes: usize, geometry: Geometry) -> bool {
    let total = nodes * geometry.bytes;
    let Some(base) = reserve_aligned(total, align_of(geometry.bytes)) else { return false };
    for node in 0..nodes {
        if mem::allow_read(base + node * geometry.bytes, geometry.room_end).is_err() {
            mem::release(base, total);
            return false;
        }
        mem::no_dump(base + node * geometry.bytes, geometry.room_end);
    }
    publish(geometry);
    place(base, nodes, Extent::whole());
    true
}

/// Gives the slices their address space, of which `extent` is mapped.
fn place(base: usize, nodes: usize, extent: Extent) {
    let bytes = geometry().bytes;
    for (node, slice) in SLICES.iter().enumerate().take(nodes) {
        slice.place(base + node * bytes, extent);
        slice.settle(NodeIndex::new(node));
    }
    END.store(base + nodes * bytes, Ordering::Relaxed);
    CLASSES_END.store(base + nodes * bytes, Ordering::Relaxed);
    // Release: who sees the base sees the geometry.
    BASE.store(base, Ordering::Release);
}

#[expect(unsafe_code, reason = "a write before there are readers")]
fn publish(geometry: Geometry) {
    // SAFETY: see `Published`.
    unsafe { *GEOMETRY.0.get() = geometry };
}

/// The geometry of every slice.
#[expect(unsafe_code, reason = "read after the one write")]
pub(crate) fn geometry() -> &'static Geometry {
    // SAFETY: see `Published`.
    unsafe { &*GEOMETRY.0.get() }
}

/// Where `address` lies; none for memory that is not ours.
pub(crate) fn locate(address: usize) -> Option<Place> {
    let base = BASE.load(Ordering::Acquire);
    if address < base || address >= END.load(Ordering::Relaxed) {
        return None;
    }
    let number = (address - base) >> geometry().shift();
    let slice = SLICES.get(number)?;
    let offset = (address - base) & (geometry().bytes - 1);
    let place = Place { slice, node: NodeIndex::new(number), offset };
    if HAVE_HOLES.load(Ordering::Relaxed) != 0 && !slice.has(place.compound().0) {
        return None;
    }
    Some(place)
}

/// From here on [`class_byte`] and [`home_and_class`] say 0 of every address: at start alone.
pub(crate) fn hide_classes() {
    CLASSES_END.store(0, Ordering::Relaxed);
}

/// The class byte of the run that `address` lies in; 0 for memory that is not ours.  The same as by way of
/// [`locate`], in half the time.
pub(crate) fn class_byte(address: usize) -> u8 {
    home_and_class(address).1
}

/// The node of `address`, and the class byte of the run that it lies in; node 0 and 0 for memory that is not
/// ours.
pub(crate) fn home_and_class(address: usize) -> (NodeIndex, u8) {
    let base = BASE.load(Ordering::Acquire);
    if address < base || address >= CLASSES_END.load(Ordering::Relaxed) {
        return (NodeIndex::ZERO, 0);
    }
    let number = (address - base) >> geometry().shift();
    let slice_base = base + (number << geometry().shift());
    #[expect(unsafe_code, reason = "a class byte at a computed address")]
    // SAFETY: each run has its byte at its slice's base, readable from the start.
    let byte =
        unsafe { mem::record::<AtomicU8>(slice_base + ((address - slice_base) >> RUN_SHIFT)) };
    (NodeIndex::new(number), byte.load(Ordering::Acquire))
}

/// The addresses of all slices.
pub(crate) fn slices() -> Range<usize> {
    BASE.load(Ordering::Acquire)..END.load(Ordering::Relaxed)
}

/// Bytes of the reservation that nobody has used so far.
pub(crate) fn unused() -> usize {
    SLICES.iter().take(topo::nodes()).map(Slice::unused).sum()
}

/// Unmaps what nobody has used so far, but for about `bytes` that all slices together may grow by.
pub(crate) fn cut(bytes: usize) {
    let nodes = topo::nodes();
    // First: who has an address of another map in a hole got it after the cut, and so sees this.
    HAVE_HOLES.store(1, Ordering::Relaxed);
    SLICES.iter().take(nodes).for_each(|slice| slice.cut(bytes / nodes));
}

/// A node's slice.
pub(crate) fn slice(node: NodeIndex) -> &'static Slice {
    &SLICES[node.get()]
}

/// The slices whose memory has been used, with their nodes.
pub(crate) fn open_slices() -> impl Iterator<Item = (NodeIndex, &'static Slice)> {
    let slices = SLICES.iter().enumerate().take(topo::nodes());
    slices.filter(|(_, slice)| slice.is_open()).map(|(node, slice)| (NodeIndex::new(node), slice))
}
