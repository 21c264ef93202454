//! topo: which nodes there are, how far from each other, which have memory that the process may use, and which
//! one a CPU is on.
//!
//! Nodes are counted densely ([`NodeIndex`]); the kernel's numbers may have holes.  A *fake topology*
//! puts CPU k on node k modulo n without asking the kernel for anything, so that the node logic runs
//! at native speed on a machine with one node.

mod list;
mod machine;
#[cfg(test)]
mod tests;

use core::cell::UnsafeCell;
use core::fmt::Write;

use crate::base::config::{LANES_MAX, NODES_MAX};
use crate::base::ids::{CpuId, KernelNode, LaneId, NodeIndex};
use crate::base::nodemask::NodeMask;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::sys::file::Text;
use crate::sys::{cpu, file, mem, rseq};
use machine::{File, Machine, Texts};

/// Written at start, before anything above this layer runs.
static MACHINE: Published = Published(UnsafeCell::new(Machine::one()));
static FAKE: AtomicU32 = AtomicU32::new(0);
/// Bit n: the process may have memory of node n.
static ALLOWED: AtomicU64 = AtomicU64::new(u64::MAX);

#[derive(Debug)]
struct Published(UnsafeCell<Machine>);

#[expect(unsafe_code, reason = "written once, before there are readers")]
// SAFETY: `start` writes it while no other thread can be past its first allocation, which waits
// for `start` to end; afterwards it is only read.
unsafe impl Sync for Published {}

/// The files of the kernel.
struct Sysfs;

impl Texts for Sysfs {
    fn read<'a>(&self, name: File, buffer: &'a mut [u8]) -> &'a [u8] {
        const FOLDER: &str = "/sys/devices/system/node";
        let mut path = [0; 64];
        let mut text = Text::new(&mut path);
        let written = match name {
            File::HasMemory => write!(text, "{FOLDER}/has_memory\0"),
            File::Online => write!(text, "{FOLDER}/online\0"),
            File::Distance(node) => write!(text, "{FOLDER}/node{}/distance\0", node.0),
        };
        debug_assert!(written.is_ok(), "the path fits");
        file::read(&path, buffer).unwrap_or_default()
    }
}

/// Reads the machine, or invents `fake` nodes when it is not zero.
// Apart, so that the other parts of the start do not run above its frame.
#[inline(never)]
pub(crate) fn start(fake: u32, buffer: &mut [u8]) {
    #[expect(unsafe_code, reason = "the one write of the machine")]
    // SAFETY: see `Published`.
    let machine = unsafe { &mut *MACHINE.0.get() };
    if fake > 0 {
        FAKE.store(1, Ordering::Relaxed);
        machine.invent(fake as usize);
    } else {
        machine.read(&Sysfs, buffer, mem::allowed_nodes);
        refresh();
    }
}

/// Asks anew where the process may have memory: a cpuset may have changed.
#[inline(never)]
pub(crate) fn refresh() {
    let machine = machine();
    if is_fake() || machine.count() == 1 {
        return;
    }
    let mut mask = NodeMask::EMPTY;
    if !mem::allowed_nodes(&mut mask) {
        // A sandbox refuses the question: whatever there is.
        return;
    }
    let allowed = (0..machine.count())
        .filter(|&node| mask.contains(machine.kernel(NodeIndex::new(node)).0))
        .fold(0, |bits, node| bits | 1 << node);
    ALLOWED.store(if allowed == 0 { u64::MAX } else { allowed }, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "read after the one write")]
fn machine() -> &'static Machine {
    // SAFETY: see `Published`.
    unsafe { &*MACHINE.0.get() }
}

/// Nodes the allocator tells apart; at least 1, at most [`NODES_MAX`].
pub(crate) fn nodes() -> usize {
    machine().count()
}

/// The nodes whose memory the process may use, a bit each; at least one.
pub(crate) fn usable() -> u64 {
    let memory = machine().memory();
    let allowed = memory & ALLOWED.load(Ordering::Relaxed);
    if allowed == 0 { memory } else { allowed }
}

/// True when the node has memory of its own.
pub(crate) fn has_memory(node: NodeIndex) -> bool {
    machine().memory() >> node.get() & 1 != 0
}

/// True when the nodes are invented.
pub(crate) fn is_fake() -> bool {
    FAKE.load(Ordering::Relaxed) != 0
}

/// The kernel's number of a node; where nodes are invented, the number by which users know it.
pub(crate) fn number(node: NodeIndex) -> KernelNode {
    if is_fake() {
        return KernelNode(u32::from(node.byte()));
    }
    machine().kernel(node)
}

/// The node that users and the kernel know by a number; none where there is none, or too many.
pub(crate) fn by_number(number: u32) -> Option<NodeIndex> {
    machine().index_of(KernelNode(number))
}

/// The kernel's number of a node, for memory that is to be there; none where nodes are invented, or where
/// there is no other, or no memory.
pub(crate) fn preferred(node: NodeIndex) -> Option<KernelNode> {
    (nodes() > 1 && !is_fake() && has_memory(node)).then(|| machine().kernel(node))
}

/// The node nearest to `from` among the bits of `among`.
pub(crate) fn nearest(from: NodeIndex, among: u64) -> Option<NodeIndex> {
    if among >> from.get() & 1 != 0 { Some(from) } else { machine().nearest(from, among) }
}

/// The node of `cpu`, which the calling thread believes to be on; none when it is elsewhere by now.
pub(crate) fn node_of(cpu: CpuId) -> Option<NodeIndex> {
    if is_fake() {
        return Some(NodeIndex::new(cpu.index() % nodes()));
    }
    if nodes() == 1 {
        return Some(NodeIndex::ZERO);
    }
    match rseq::node_hint().or_else(cpu::current) {
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

/// The node of a number that the kernel told of a CPU: one past the last that are told apart is served by the
/// first.
fn index_of(node: KernelNode) -> NodeIndex {
    machine().index_of(node).unwrap_or(NodeIndex::ZERO)
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

const _: () = assert!(NODES_MAX <= 64, "sets of nodes are words");
