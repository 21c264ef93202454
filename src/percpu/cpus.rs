//! CPUs: the table of slabs, a record each, and the flips (see [`super::flip`]) on real sections.
#![allow(unsafe_code, reason = "records and table entries at computed addresses")]

pub(super) use super::flip::Phase;

use crossbeam_utils::CachePadded;

use super::flip::Flip;
use super::slab::Slab;
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::sys::arch::HOT;
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::{mem, process, rseq};
use crate::{region, topo};

/// A CPU's record.  Zero bytes are an absent one.
#[derive(Debug)]
pub(super) struct Cpu {
    lock: Lock,
    flip: Flip,
    generation: AtomicUsize,
    /// Misses of the fast path that came here.
    pub(super) misses: AtomicU64,
    /// Objects that drains took.
    pub(super) drained: AtomicU64,
}

/// A thread's place on a CPU that has a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) cpu: CpuId,
    pub(super) node: NodeIndex,
}

static RECORDS: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static MISS: AtomicUsize = AtomicUsize::new(0);

/// Makes the table for CPUs 0 to `count` - 1, all missing.  The two entries before the first serve
/// threads whose `cpu_id` is -1 or -2: not registered.  False: the system refuses the memory.
pub(crate) fn start(count: usize) -> bool {
    const PAGE: usize = 4096;
    let table_bytes = ((count + 2) * 8).next_multiple_of(128);
    let Ok(block) = mem::map(PAGE + table_bytes + count * size_of::<CachePadded<Cpu>>()) else {
        return false;
    };
    let miss = Slab::build_miss(block);
    MISS.store(miss.0, Ordering::Relaxed);
    RECORDS.store(block + PAGE + table_bytes, Ordering::Relaxed);
    HOT.table.store(block + PAGE + 16, Ordering::Relaxed);
    for entry in 0..count + 2 {
        // SAFETY: the block has that many words there.
        let entry = unsafe { mem::record::<AtomicUsize>(block + PAGE + entry * 8) };
        entry.store(miss.0, Ordering::Relaxed);
    }
    COUNT.store(count, Ordering::Relaxed);
    true
}

/// CPUs that the table has entries for.
pub(super) fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// A CPU's record; none for a CPU beyond the table.
pub(super) fn record(cpu: CpuId) -> Option<&'static Cpu> {
    (cpu.index() < count()).then(|| {
        let address = RECORDS.load(Ordering::Relaxed) + cpu.index() * size_of::<CachePadded<Cpu>>();
        // SAFETY: `start` mapped that many zeroed records there, for good.
        &**unsafe { mem::record::<CachePadded<Cpu>>(address) }
    })
}

/// The calling thread's seat: its CPU and the CPU's node, after giving the CPU a slab if it has none.
/// None: this thread runs without a cache.
pub(super) fn seat() -> Option<Seat> {
    if process::is_vfork_child() {
        return None;
    }
    let cpu = rseq::current_cpu()?;
    let record = record(cpu)?;
    record.misses.fetch_add(1, Ordering::Relaxed);
    if matches!(record.phase(), Phase::Absent | Phase::Asked) {
        record.settle(cpu)?;
    }
    Some(Seat { cpu, node: record.node() })
}

/// Objects in all slabs, misses, and objects drained: for stats.
pub(crate) fn census() -> [u64; 4] {
    let mut sums = [0; 4];
    for cpu in (0..count()).filter_map(|cpu| record(CpuId(u32::try_from(cpu).ok()?))) {
        let slab = cpu.flip.live();
        if slab != 0 {
            sums[0] += 1;
            let cached: usize =
                (0..crate::sys::arch::STACKS).map(|stack| Slab(slab).len(stack)).sum();
            sums[1] += cached as u64;
        }
        sums[2] += cpu.misses.load(Ordering::Relaxed);
        sums[3] += cpu.drained.load(Ordering::Relaxed);
    }
    sums
}

impl Cpu {
    pub(super) fn phase(&self) -> Phase {
        self.flip.phase()
    }

    pub(super) fn node(&self) -> NodeIndex {
        self.flip.node()
    }

    /// Takes the flip lock.
    pub(super) fn enter(&'static self, cpu: CpuId) -> Held<'static> {
        let held = self.lock.enter(Rank::Flip);
        self.recover(&held, cpu);
        held
    }

    fn recover(&self, held: &Held<'_>, cpu: CpuId) {
        if held.orphaned() {
            // The thread that held it is gone with what it had in hand: objects of the slabs it
            // worked on are lost, in this child alone.  The CPU starts anew.
            self.flip.forget(entry(cpu), miss());
        }
    }

    /// An empty slab for this CPU.
    fn build(&self, cpu: CpuId) -> Option<usize> {
        let node = self.node();
        let slice = region::slice(node);
        slice.open(node).ok()?;
        Some(Slab::build(slice, node, cpu, self.generation.fetch_add(1, Ordering::Relaxed))?.0)
    }

    /// On the CPU itself: gives an absent CPU its first slab, or answers a drain that asks.
    #[cold]
    fn settle(&'static self, cpu: CpuId) -> Option<()> {
        let held = self.lock.try_enter(Rank::Flip)?;
        self.recover(&held, cpu);
        // SAFETY: the flip lock is held, and the slab is metadata that stays.
        let flip = |slab| unsafe { rseq::flip(cpu, miss(), slab) };
        self.flip.settle(|| topo::node_of(cpu), || self.build(cpu), flip)
    }

    /// Flips the CPU, which is this thread's own, to an empty slab.  The old one is the caller's.
    pub(super) fn flip_own(&self, cpu: CpuId) -> Option<Slab> {
        // SAFETY: as in `settle`; the caller holds the flip lock.
        let flip = |old, slab| unsafe { rseq::flip(cpu, old, slab) };
        self.flip.exchange(|| self.build(cpu), flip).map(Slab)
    }

    /// Flips the CPU to the slab that misses: from here on its next slow path answers.  False: there is
    /// no memory for the slab that comes after.
    pub(super) fn ask(&self, cpu: CpuId) -> bool {
        self.flip.ask(entry(cpu), miss(), || self.build(cpu))
    }

    /// The slab that was asked for, once nobody uses it; the CPU is live again.
    pub(super) fn collect(&self, cpu: CpuId) -> Option<Slab> {
        self.flip.collect(entry(cpu), || self.build(cpu)).map(Slab)
    }

    /// Keeps an emptied slab for the next flip.
    pub(super) fn keep(&self, slab: Slab) {
        self.flip.keep(slab.0);
    }
}

/// `table[cpu]` of a CPU that has a record.
fn entry(cpu: CpuId) -> &'static AtomicUsize {
    // SAFETY: a record's CPU has an entry.
    unsafe { mem::record(HOT.table.load(Ordering::Relaxed) + cpu.index() * 8) }
}

/// The slab that always misses.
fn miss() -> usize {
    MISS.load(Ordering::Relaxed)
}
