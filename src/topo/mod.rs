//! topo: which nodes there are, and which one a CPU is on.
//!
//! Nodes are counted densely ([`NodeIndex`]); the kernel's numbers may have holes.  A *fake topology*
//! puts CPU k on node k modulo n without asking the kernel for anything, so that the node logic runs
//! at native speed on a machine with one node.

mod list;

use crate::base::config::{LANES_MAX, NODES_MAX};
use crate::base::ids::{CpuId, KernelNode, LaneId, NodeIndex};
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::{cpu, file, mem};

static NODES: AtomicU32 = AtomicU32::new(1);
static FAKE: AtomicU32 = AtomicU32::new(0);
/// Kernel numbers by index.
static KERNEL: [AtomicU32; NODES_MAX] = [const { AtomicU32::new(0) }; NODES_MAX];

/// Reads the machine, or invents `fake` nodes when it is not zero.
pub(crate) fn start(fake: u32, buffer: &mut [u8]) {
    if fake > 0 {
        FAKE.store(1, Ordering::Relaxed);
        NODES.store(fake.min(MAX), Ordering::Relaxed);
        return;
    }
    if let Some(only) = mem::only_node() {
        // The usual machine, asked in one call.
        KERNEL[0].store(only, Ordering::Relaxed);
        return;
    }
    let mut count = 0;
    if let Ok(text) = file::read(b"/sys/devices/system/node/online\0", buffer) {
        for node in list::numbers(text).take(NODES_MAX) {
            KERNEL[count as usize].store(node, Ordering::Relaxed);
            count += 1;
        }
    }
    NODES.store(count.clamp(1, MAX), Ordering::Relaxed);
}

#[expect(clippy::cast_possible_truncation, reason = "64")]
const MAX: u32 = NODES_MAX as u32;

/// Nodes the allocator tells apart; at least 1.
pub(crate) fn nodes() -> usize {
    NODES.load(Ordering::Relaxed) as usize
}

/// True when the nodes are invented.
pub(crate) fn is_fake() -> bool {
    FAKE.load(Ordering::Relaxed) != 0
}

/// The kernel's number of a node, for memory that is to be there; none where nodes are invented, or where
/// there is no other.
pub(crate) fn preferred(node: NodeIndex) -> Option<KernelNode> {
    (nodes() > 1 && !is_fake()).then(|| KernelNode(KERNEL[node.get()].load(Ordering::Relaxed)))
}

/// The node of `cpu`, which the calling thread believes to be on; none when it is elsewhere by now.
pub(crate) fn node_of(cpu: CpuId) -> Option<NodeIndex> {
    if is_fake() {
        return Some(NodeIndex::new(cpu.index() % nodes()));
    }
    if nodes() == 1 {
        return Some(NodeIndex::ZERO);
    }
    match cpu::current() {
        Some((here, node)) => (here == cpu).then(|| index_of(KernelNode(node))),
        // A sandbox that refuses the question: any node is as good.
        None => Some(NodeIndex::ZERO),
    }
}

/// The CPU and node of the calling thread, by system call: for threads without rseq.
pub(crate) fn here() -> NodeIndex {
    if nodes() == 1 {
        return NodeIndex::ZERO;
    }
    match cpu::current() {
        Some((cpu, _)) if is_fake() => NodeIndex::new(cpu.index() % nodes()),
        Some((_, node)) => index_of(KernelNode(node)),
        None => NodeIndex::ZERO,
    }
}

/// Leaders of the last-level caches met so far, plus 1, by lane.
static LEADERS: [AtomicU32; LANES_MAX] = [const { AtomicU32::new(0) }; LANES_MAX];

/// The lane of `cpu`: CPUs with the same last-level cache have the same one.  Caches past
/// [`LANES_MAX`], and machines that do not tell, share lanes: it is about speed alone.
pub(crate) fn lane_of(cpu: CpuId) -> LaneId {
    let Some(leader) = cpu::last_level_leader(cpu) else { return LaneId::new(0) };
    let known = leader + 1;
    let lane = LEADERS.iter().position(|word| {
        let claimed = word.compare_exchange(0, known, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok() || claimed == Err(known)
    });
    LaneId::new(lane.unwrap_or(leader as usize))
}

fn index_of(node: KernelNode) -> NodeIndex {
    let found =
        KERNEL.iter().take(nodes()).position(|known| known.load(Ordering::Relaxed) == node.0);
    NodeIndex::new(found.unwrap_or(0))
}
