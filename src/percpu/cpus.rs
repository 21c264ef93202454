//! A CPU's record: who may write its table entry, and when.
//!
//! | phase | `table[cpu]` | slabs | who leaves it, and how |
//! |---|---|---|---|
//! | Absent | miss | none | the CPU's own slow path: builds A, flips miss to A in a section: Live |
//! | Live | A | A in use, maybe B empty in `spare` | a drain from elsewhere: A to miss: Asked. Own drain: A to B in a section: Live |
//! | Asked | miss | A in `asked`: maybe still used by one section | the CPU's own slow path: flips miss to B in a section, which proves that every earlier section ended: Answered. A drain that fenced, or saw every task asleep or elsewhere: Live, with B |
//! | Answered | B | A in `asked`: nobody uses it | the next drain: empties A: Live |
//! | Off | miss | none | [step 6: cache off]: the CPU keeps no cache |
//!
//! Every change of `table[cpu]` and of the record is made by the holder of the CPU's flip lock; the
//! CPU's own side only tries it, and does without a cache when it is taken.  A later step's larger
//! slab ("growing") is an own drain whose new slab has other limits; giving a CPU's memory back is a
//! drain that ends in Absent.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | F1 `table[cpu]` store by a drain | Release | F2 | publishes the new slab's words |
//! | F2 slab load in a section | (address dependency) | F1, F3 | |
//! | F3 `table[cpu]` store in a section | plain, after the slab's words (x86-64: stores stay in order) | F2 | |
//! | F4 fence between F1 and reading a task's state | SeqCst | the kernel's context switch | a task that runs there later sees F1 |
//! | F5 `phase` store | Release, under the flip lock | F6 | |
//! | F6 `phase` load without the lock | Acquire | F5 | only chooses whether to try the lock |
#![allow(unsafe_code, reason = "records and table entries at computed addresses")]

use super::slab::Slab;
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sys::arch::HOT;
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::{mem, process, rseq};
use crate::{region, topo};

/// What a CPU's table entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Phase {
    /// No slab yet.
    Absent = 0,
    /// A slab in use.
    Live = 1,
    /// A drain took the slab and waits for the CPU's sections to end.
    Asked = 2,
    /// They have ended.
    Answered = 3,
}

/// A CPU's record.  Zero bytes are an absent one.
#[repr(C, align(128))]
#[derive(Debug)]
pub(super) struct Cpu {
    flip: Lock,
    phase: AtomicU32,
    node: AtomicU32,
    live: AtomicUsize,
    spare: AtomicUsize,
    asked: AtomicUsize,
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
/// threads whose cpu_id is -1 or -2: not registered.  False: the system refuses the memory.
pub(crate) fn start(count: usize) -> bool {
    const PAGE: usize = 4096;
    let table_bytes = ((count + 2) * 8).next_multiple_of(128);
    let Ok(block) = mem::map(PAGE + table_bytes + count * size_of::<Cpu>()) else { return false };
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
        let address = RECORDS.load(Ordering::Relaxed) + cpu.index() * size_of::<Cpu>();
        // SAFETY: `start` mapped that many zeroed records there, for good.
        unsafe { mem::record(address) }
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
    // F6
    if matches!(record.phase(), Phase::Absent | Phase::Asked) {
        record.settle(cpu)?;
    }
    Some(Seat { cpu, node: record.node() })
}

/// Objects in all slabs, misses, and objects drained: for stats.
pub(crate) fn census() -> [u64; 4] {
    let mut sums = [0; 4];
    for cpu in (0..count()).filter_map(|cpu| record(CpuId(u32::try_from(cpu).ok()?))) {
        let slab = cpu.live.load(Ordering::Relaxed);
        if slab != 0 {
            sums[0] += 1;
            let cached: usize = (0..crate::sys::arch::STACKS).map(|stack| Slab(slab).len(stack)).sum();
            sums[1] += cached as u64;
        }
        sums[2] += cpu.misses.load(Ordering::Relaxed);
        sums[3] += cpu.drained.load(Ordering::Relaxed);
    }
    sums
}

impl Cpu {
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            1 => Phase::Live,
            2 => Phase::Asked,
            3 => Phase::Answered,
            _ => Phase::Absent,
        }
    }

    pub(super) fn node(&self) -> NodeIndex {
        NodeIndex::new(self.node.load(Ordering::Relaxed) as usize)
    }

    fn become_phase(&self, phase: Phase) {
        // F5
        self.phase.store(phase as u32, Ordering::Release);
    }

    /// Takes the flip lock.
    pub(super) fn enter(&'static self, cpu: CpuId) -> Held<'static> {
        let held = self.flip.enter(Rank::Flip);
        self.recover(&held, cpu);
        held
    }

    fn recover(&self, held: &Held<'_>, cpu: CpuId) {
        if held.orphaned() {
            // The thread that held it is gone with what it had in hand: objects of the slabs it
            // worked on are lost, in this child alone.  The CPU starts anew.
            self.point(cpu, Slab(MISS.load(Ordering::Relaxed)));
            for slab in [&self.live, &self.spare, &self.asked] {
                slab.store(0, Ordering::Relaxed);
            }
            self.become_phase(Phase::Absent);
        }
    }

    /// Sets `table[cpu]`.
    fn point(&self, cpu: CpuId, slab: Slab) {
        let entry = HOT.table.load(Ordering::Relaxed) + cpu.index() * 8;
        // SAFETY: a record's CPU has an entry.
        let entry = unsafe { mem::record::<AtomicUsize>(entry) };
        // F1
        entry.store(slab.0, Ordering::Release);
    }

    /// An empty slab for this CPU.
    fn fresh(&self, cpu: CpuId) -> Option<Slab> {
        let spare = self.spare.swap(0, Ordering::Relaxed);
        if spare != 0 {
            return Some(Slab(spare));
        }
        let node = self.node();
        let slice = region::slice(node);
        slice.open(node).ok()?;
        Slab::build(slice, node, cpu, self.generation.fetch_add(1, Ordering::Relaxed))
    }

    /// On the CPU itself: gives an absent CPU its first slab, or answers a drain that asks.
    #[cold]
    fn settle(&'static self, cpu: CpuId) -> Option<()> {
        let held = self.flip.try_enter(Rank::Flip)?;
        self.recover(&held, cpu);
        let phase = self.phase();
        let next = match phase {
            Phase::Live | Phase::Answered => return Some(()),
            Phase::Absent => {
                let node = topo::node_of(cpu).get();
                self.node.store(u32::try_from(node).unwrap_or(0), Ordering::Relaxed);
                Phase::Live
            }
            Phase::Asked => Phase::Answered,
        };
        let slab = self.fresh(cpu)?;
        // SAFETY: the flip lock is held, and the slab is metadata that stays.
        if unsafe { rseq::flip(cpu, MISS.load(Ordering::Relaxed), slab.0) } {
            self.live.store(slab.0, Ordering::Relaxed);
            self.become_phase(next);
            Some(())
        } else {
            // This thread runs elsewhere by now.
            self.spare.store(slab.0, Ordering::Relaxed);
            None
        }
    }

    /// Flips the CPU, which is this thread's own, to an empty slab.  The old one is the caller's.
    pub(super) fn flip_own(&self, cpu: CpuId) -> Option<Slab> {
        let old = self.live.load(Ordering::Relaxed);
        let slab = self.fresh(cpu)?;
        // SAFETY: as in `settle`; the caller holds the flip lock.
        if unsafe { rseq::flip(cpu, old, slab.0) } {
            self.live.store(slab.0, Ordering::Relaxed);
            return Some(Slab(old));
        }
        self.spare.store(slab.0, Ordering::Relaxed);
        None
    }

    /// Flips the CPU to the slab that misses: from here on its next slow path answers.
    pub(super) fn ask(&self, cpu: CpuId) {
        self.point(cpu, Slab(MISS.load(Ordering::Relaxed)));
        // F4
        crate::base::sync::fence(Ordering::SeqCst);
        self.asked.store(self.live.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.become_phase(Phase::Asked);
    }

    /// The slab that was asked for, once nobody uses it; the CPU is live again.
    pub(super) fn collect(&self, cpu: CpuId) -> Option<Slab> {
        if self.phase() == Phase::Asked {
            let slab = self.fresh(cpu)?;
            self.live.store(slab.0, Ordering::Relaxed);
            self.point(cpu, slab);
        }
        self.become_phase(Phase::Live);
        Some(Slab(self.asked.swap(0, Ordering::Relaxed)))
    }

    /// Keeps an emptied slab for the next flip.
    pub(super) fn keep(&self, slab: Slab) {
        self.spare.store(slab.0, Ordering::Relaxed);
    }
}
