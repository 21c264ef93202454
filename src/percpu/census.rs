//! Numbers of the CPUs, at some moment: other threads go on meanwhile.  Slabs are metadata that stays, so a
//! look at one that has just been flipped out finds stale numbers, and nothing worse.

use super::cpus::{count, record};
use crate::base::classes::{CLASSES, Class};
use crate::base::ids::{CpuId, NodeIndex};
use crate::region;
use crate::sys::arch::REMOTE_STACK;

/// A CPU's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuCensus {
    /// The CPU.
    pub(crate) cpu: CpuId,
    /// Its node.
    pub(crate) node: NodeIndex,
    /// True while it has a slab.
    pub(crate) has_slab: bool,
    /// Bytes of objects that its slab is divided for.
    pub(crate) bytes: usize,
    /// Objects of its node in its slab.
    pub(crate) cached: u64,
    /// Objects of other nodes that wait there to go home.
    pub(crate) away: u64,
    /// Calls of the slow path.
    pub(crate) calls: u64,
    /// Of those, calls that the slab served after all.
    pub(crate) served: u64,
    /// Objects that drains took.
    pub(crate) drained: u64,
    /// Objects that left for their home.
    pub(crate) sent_home: u64,
}

/// The numbers of the CPUs that have, or had, a slab.
pub(crate) fn census() -> impl Iterator<Item = CpuCensus> {
    cpus().filter_map(|cpu| record(cpu)?.census(cpu))
}

/// Objects of a class in the slabs of all CPUs.
pub(crate) fn cached(class: Class) -> u64 {
    cpus().filter_map(record).map(|record| record.objects(class.index())).sum()
}

/// Objects of an open slice, node `node`'s, in all slabs, by class: for stats.
pub(crate) fn cached_of(node: NodeIndex) -> [u32; CLASSES] {
    let mut objects = [0; CLASSES];
    for cpu in cpus().filter_map(record) {
        let Some(slab) = cpu.live() else { continue };
        if cpu.node() == node {
            for (class, sum) in objects.iter_mut().enumerate() {
                *sum += u32::try_from(slab.len(class)).unwrap_or(0);
            }
        }
        for object in slab.peek(REMOTE_STACK + node.get()) {
            objects[usize::from(region::class_byte(object))] += 1;
        }
    }
    // Class 0 is none: a word that was just changing.
    objects[0] = 0;
    objects
}

/// The CPUs that the table has entries for.
pub(super) fn cpus() -> impl Iterator<Item = CpuId> {
    (0..count()).filter_map(|cpu| u32::try_from(cpu).ok().map(CpuId))
}
