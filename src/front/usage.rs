//! Who holds the memory: the program, or the allocator.
//!
//! What the program holds is what its spans gave out, less what waits in the caches of CPUs and between
//! them.  Nobody stops meanwhile: the sum is exact while no other thread allocates or frees, and otherwise
//! off by what they do.  Counted as held by the program:
//!
//! | what | until |
//! |---|---|
//! | objects in the hands of threads that are in a slow path | they leave it: at most a batch each |
//! | a cache that a drain has asked for and not got yet | the drain is done |
//! | what was freed in a signal handler that interrupted malloc | the next slow path |
//! | compounds that such handlers got memory from, whole | their blocks are free, and a trim |
//! | in a child of fork, what the parent's other threads had in hand | the child ends |

use core::ops::Add;

use super::start;
use crate::base::classes::Class;
use crate::base::config::{COMPOUND_BYTES, RUN_BYTES};
use crate::base::ids::NodeIndex;
use crate::{pageheap, percpu, region, slab, topo, transfer};

/// What memory is used for, at some moment: bytes, and numbers of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the compounds that blocks of up to 1 MiB are cut from.
    pub cut_bytes: u64,
    /// Bytes of such blocks that the program holds, by their usable sizes.
    pub held_bytes: u64,
    /// Free objects in caches, of CPUs and between them.
    pub cached: u64,
    /// Bytes of those.
    pub cached_bytes: u64,
    /// Free objects in spans, and ranges of adjacent free runs beside them.
    pub free: u64,
    /// Blocks over 1 MiB that the program holds.
    pub large: u64,
    /// Usable bytes of those.
    pub large_bytes: u64,
    /// Free compounds that keep their pages: what a trim gives back.
    pub resident: u64,
}

/// Free blocks of about one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeBlocks {
    /// Bytes of the smallest.
    pub from: u64,
    /// Bytes of the largest.
    pub to: u64,
    /// The sum of their bytes.
    pub bytes: u64,
    /// How many.
    pub count: u64,
}

impl FreeBlocks {
    const fn equal(size: u64, count: u64) -> Self {
        Self { from: size, to: size, bytes: size * count, count }
    }
}

impl Usage {
    /// Counts on all nodes.
    #[must_use]
    pub fn take() -> Self {
        (0..Self::nodes()).filter_map(Self::of_node).fold(Self::default(), Add::add)
    }

    /// Nodes that there are; 0 when the allocator cannot start.
    #[must_use]
    pub fn nodes() -> usize {
        if start::ensure() { topo::nodes() } else { 0 }
    }

    /// True once the node has given out something.
    #[must_use]
    pub fn has_node(node: usize) -> bool {
        node < Self::nodes() && region::slice(NodeIndex::new(node)).is_open()
    }

    /// Counts on one node; none where that has given out nothing yet.
    #[must_use]
    pub fn of_node(node: usize) -> Option<Self> {
        Self::of_node_by_size(node, |_| ())
    }

    /// Counts on one node, and shows the free blocks of each size that has any: objects, in spans and in
    /// caches, ranges of free runs, and free compounds that keep their pages.  Their numbers add up to
    /// `cached`, `free` and `resident`; their bytes are all that is cut and not held, but for what is
    /// left over at the ends of spans.
    pub fn of_node_by_size(node: usize, mut show: impl FnMut(FreeBlocks)) -> Option<Self> {
        if !Self::has_node(node) {
            return None;
        }
        let node = NodeIndex::new(node);
        let slice = region::slice(node);
        let [cut, _] = pageheap::census(slice);
        let [large, large_bytes, emergency] = pageheap::large::census(slice);
        let [_, _, resident] = slice.census();
        let emergency_bytes = emergency * COMPOUND_BYTES as u64;
        let mut usage = Self {
            cut_bytes: u64::from(cut) * COMPOUND_BYTES as u64 + emergency_bytes,
            held_bytes: emergency_bytes,
            large,
            large_bytes,
            resident: u64::from(resident + pageheap::large::parked(slice)),
            ..Self::default()
        };
        let cached = percpu::cached_of(node);
        for class in Class::all() {
            let pool = slab::census(slice, class);
            let waiting = u64::from(cached[class.index()]) + transfer::census(slice, class);
            let shape = class.shape();
            usage.held_bytes += pool.out.saturating_sub(waiting) * u64::from(shape.size);
            usage.cached += waiting;
            usage.cached_bytes += waiting * u64::from(shape.size);
            let room = u64::from(pool.spans) * u64::from(shape.objects);
            let free = room.saturating_sub(pool.out);
            usage.free += free;
            if free + waiting > 0 {
                show(FreeBlocks::equal(shape.size.into(), free + waiting));
            }
        }
        let gaps = pageheap::gaps(slice);
        usage.free += u64::from(gaps.count);
        if gaps.count > 0 {
            let [from, to, bytes] = [gaps.shortest, gaps.longest, gaps.runs]
                .map(|runs| u64::from(runs) * RUN_BYTES as u64);
            show(FreeBlocks { from, to, bytes, count: gaps.count.into() });
        }
        if usage.resident > 0 {
            show(FreeBlocks::equal(COMPOUND_BYTES as u64, usage.resident));
        }
        Some(usage)
    }

    /// Bytes of the free compounds that keep their pages.
    #[must_use]
    pub const fn resident_bytes(&self) -> u64 {
        self.resident * COMPOUND_BYTES as u64
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cut_bytes: self.cut_bytes + other.cut_bytes,
            held_bytes: self.held_bytes + other.held_bytes,
            cached: self.cached + other.cached,
            cached_bytes: self.cached_bytes + other.cached_bytes,
            free: self.free + other.free,
            large: self.large + other.large,
            large_bytes: self.large_bytes + other.large_bytes,
            resident: self.resident + other.resident,
        }
    }
}
