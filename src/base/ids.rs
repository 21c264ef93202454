//! Names of things as types: a node, a CPU, a compound, a class are never mixed up.

use super::config::{COMPOUND_SHIFT, LANES_MAX, NODES_MAX};

/// A node as the allocator counts them: dense, from 0.  Not the kernel's number: see [`KernelNode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(crate) struct NodeIndex(u8);

impl NodeIndex {
    /// The first node, which every machine has.
    pub(crate) const ZERO: Self = Self(0);

    /// The node with this index; indices past the largest wrap round.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "reduced below 64")]
    pub(crate) const fn new(index: usize) -> Self {
        Self((index % NODES_MAX) as u8)
    }

    /// The index, below [`NODES_MAX`].
    #[must_use]
    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }

    /// The index as a byte.
    pub(crate) const fn byte(self) -> u8 {
        self.0
    }
}

/// A node's number in the kernel: `/sys/devices/system/node/nodeN`; may have holes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KernelNode(pub(crate) u32);

/// A CPU's number in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CpuId(pub(crate) u32);

impl CpuId {
    /// The number as an index.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A lane: CPUs that share a last-level cache, counted in the order in which they are met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneId(u8);

impl LaneId {
    /// The lane with this index; indices past the last wrap round.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "reduced below 16")]
    pub(crate) const fn new(index: usize) -> Self {
        Self((index % LANES_MAX) as u8)
    }

    /// The index, below [`LANES_MAX`].
    #[must_use]
    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }

    /// The lane `steps` further on, round and round.
    #[must_use]
    pub(crate) const fn after(self, steps: usize) -> Self {
        Self::new(self.get() + steps)
    }
}

/// A compound page's index in its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub(crate) struct CompoundId(pub(crate) u32);

impl CompoundId {
    /// Offset of the compound's first byte from its slice's base, in bytes.
    pub(crate) const fn offset(self) -> usize {
        (self.0 as usize) << COMPOUND_SHIFT
    }
}

const _: () = assert!(NODES_MAX <= 256 && LANES_MAX <= 256);
