//! The nodes of a machine, how far they are from each other, and which of them have memory: pure, so that it is
//! tried on machines that are not here.
//!
//! A node may have no memory (*bare*: its CPUs use another node's) or no CPU (memory alone: CXL, HBM, a socket
//! whose cores are off).  The kernel's numbers may have holes.

use super::list;
use crate::base::config::NODES_MAX;
use crate::base::ids::{KernelNode, NodeIndex};
use crate::base::nodemask::{KERNEL_NODES, NodeMask};

/// Where the texts of a machine come from.
pub(super) trait Texts {
    /// What a file says, in `buffer`; empty where there is no such file.
    fn read<'a>(&self, file: File, buffer: &'a mut [u8]) -> &'a [u8];
}

/// A file of `/sys/devices/system/node`.  Kernel: Documentation/ABI/stable/sysfs-devices-node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum File {
    /// `has_memory`: nodes with memory of any zone.
    HasMemory,
    /// `online`: nodes with memory or CPUs.
    Online,
    /// `nodeN/distance`: to each online node, 10 to itself.
    Distance(KernelNode),
}

/// Distances where a machine tells none: to the node itself, and to another.  ACPI 6.4, 5.2.17, SLIT.
const NEAR: u8 = 10;
const FAR: u8 = 20;

/// Nodes by index, in the order of the kernel's numbers.
#[derive(Debug)]
pub(super) struct Machine {
    with_memory: NodeMask,
    online: NodeMask,
    count: usize,
    kernel: [u16; NODES_MAX],
    /// Bit n: node n has memory.
    memory: u64,
    /// Row: from this node.
    distances: [[u8; NODES_MAX]; NODES_MAX],
}

/// The first `count` nodes.
const fn first_nodes(count: usize) -> u64 {
    if count >= NODES_MAX { u64::MAX } else { (1 << count) - 1 }
}

impl Machine {
    /// One node, number 0 of the kernel.
    pub(super) const fn one() -> Self {
        Self {
            with_memory: NodeMask::EMPTY,
            online: NodeMask::EMPTY,
            count: 1,
            kernel: [0; NODES_MAX],
            memory: 1,
            distances: [[NEAR; NODES_MAX]; NODES_MAX],
        }
    }

    /// `count` nodes that nobody has built, all with memory and equally far.
    pub(super) fn invent(&mut self, count: usize) {
        self.count = count.min(NODES_MAX);
        for (number, kernel) in (0..).zip(&mut self.kernel) {
            *kernel = number;
        }
        self.memory = first_nodes(self.count);
        self.begin_distances();
    }

    /// Reads the machine.  `allowed` tells where the process may have memory, and is asked where a machine hides its
    /// files: it fills the set, or answers false.
    pub(super) fn read(
        &mut self,
        texts: &impl Texts,
        buffer: &mut [u8],
        allowed: impl FnOnce(&mut NodeMask) -> bool,
    ) {
        if self.read_nodes(texts, buffer, allowed) {
            self.read_distances(texts, buffer);
        }
    }

    /// Reads how far the nodes are from each other.
    // Apart: `read_nodes` goes deep.
    #[inline(never)]
    fn read_distances(&mut self, texts: &impl Texts, buffer: &mut [u8]) {
        for index in 0..self.count {
            let text = texts.read(File::Distance(KernelNode(self.kernel[index].into())), buffer);
            if list::distances(text).count() < self.count {
                // What it tells cannot be put to nodes.
                continue;
            }
            for (distance, told) in self.distances[index].iter_mut().zip(list::distances(text)) {
                *distance = told;
            }
        }
    }

    /// Reads which nodes there are, and which have memory; true where there are several.
    // Apart, and its sets are the machine's own: there is little stack.
    #[inline(never)]
    fn read_nodes(
        &mut self,
        texts: &impl Texts,
        buffer: &mut [u8],
        allowed: impl FnOnce(&mut NodeMask) -> bool,
    ) -> bool {
        // The usual machine, asked by one file: its CPUs are on its only node, or as good as.
        let with_memory = &mut self.with_memory;
        list_nodes(with_memory, texts.read(File::HasMemory, buffer));
        if with_memory.is_empty() && !allowed(with_memory) {
            *with_memory = NodeMask::EMPTY;
        }
        let is_alone = with_memory.len() <= 1;
        if !is_alone {
            list_nodes(&mut self.online, texts.read(File::Online, buffer));
        }
        self.begin();
        let has_memory = |index: &usize| self.with_memory.contains(self.kernel[*index].into());
        let memory = (0..self.count).filter(has_memory).fold(0, |bits, index| bits | 1 << index);
        // Where all memory is past the last node that is told apart, these are as good as any.
        self.memory = if memory == 0 { first_nodes(self.count) } else { memory };
        !is_alone
    }

    /// Begins with the nodes that were found, whose distances nobody has told yet.
    fn begin(&mut self) {
        self.count = 0;
        for node in 0..KERNEL_NODES {
            let number = u16::try_from(node).unwrap_or(u16::MAX);
            let is_there =
                self.online.contains(number.into()) || self.with_memory.contains(number.into());
            if is_there && self.count < NODES_MAX {
                self.kernel[self.count] = number;
                self.count += 1;
            }
        }
        self.begin_distances();
    }

    /// All nodes are equally far from each other, as long as nobody tells.
    fn begin_distances(&mut self) {
        self.count = self.count.max(1);
        for (index, row) in self.distances.iter_mut().enumerate().take(self.count) {
            row.fill(FAR);
            row[index] = NEAR;
        }
    }

    /// Nodes, at least one.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Nodes with memory, a bit each.
    pub(super) const fn memory(&self) -> u64 {
        self.memory
    }

    /// The kernel's number of a node.
    pub(super) fn kernel(&self, node: NodeIndex) -> KernelNode {
        KernelNode(self.kernel[node.get()].into())
    }

    /// The node with a number of the kernel's; none where it is not told apart.
    pub(super) fn index_of(&self, kernel: KernelNode) -> Option<NodeIndex> {
        let known = self.kernel.iter().take(self.count);
        known.copied().position(|number| u32::from(number) == kernel.0).map(NodeIndex::new)
    }

    /// The distance between two nodes: 10 is none.
    #[cfg(test)]
    pub(super) fn distance(&self, from: NodeIndex, to: NodeIndex) -> u8 {
        self.distances[from.get()][to.get()]
    }

    /// The node nearest to `from` among the bits of `among`; none of none.  Of nodes that are equally far, the
    /// next by number, round and round: so that all do not turn to the first.
    pub(super) fn nearest(&self, from: NodeIndex, among: u64) -> Option<NodeIndex> {
        let after = |node: usize| (node + NODES_MAX - from.get()) % NODES_MAX;
        let nodes = (0..self.count).filter(|node| among >> node & 1 != 0);
        let nearest = nodes.min_by_key(|&node| (self.distances[from.get()][node], after(node)));
        nearest.map(NodeIndex::new)
    }
}

/// Adds the nodes of a list.
#[inline(never)]
fn list_nodes(mask: &mut NodeMask, text: &[u8]) {
    mask.extend(list::numbers(text));
}
