//! What the allocator has done, in numbers; and a check of the whole heap.
//!
//! Nothing here takes a lock or waits, so a handler may ask at any moment; other threads go on, so numbers
//! that belong together may differ by what happened in between.

use super::busy::Busy;
use crate::base::classes::Class;
use crate::sys::{fault, rseq};
use crate::{pageheap, percpu, region, slab, transfer};

/// The heap's numbers at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Compound pages ever used.
    pub compounds: u64,
    /// Of those, free ones.
    pub compounds_free: u64,
    /// Of the free ones, those that keep their pages.
    pub compounds_resident: u64,
    /// Compound pages cut into runs.
    pub compounds_cut: u64,
    /// Runs handed out.
    pub runs: u64,
    /// Refcounts of the compound pages cut into runs: the runs handed out, and pins.
    pub refcounts: u64,
    /// Spans of objects.
    pub spans: u64,
    /// Objects that are out of their spans: the program's, cached, away and racked ones.
    pub out: u64,
    /// Bytes of those objects.
    pub out_bytes: u64,
    /// Batches that spans handed out.
    pub refills: u64,
    /// Objects that spans handed out.
    pub taken: u64,
    /// Objects that came back to spans.
    pub returned: u64,
    /// Blocks of whole compound pages that are handed out.
    pub large: u64,
    /// Bytes of those blocks.
    pub large_bytes: u64,
    /// CPUs with a slab.
    pub cpus: u64,
    /// Bytes of objects that all slabs are divided for.
    pub slab_bytes: u64,
    /// Objects in the slabs of CPUs.
    pub cached: u64,
    /// Of those, objects of other nodes that wait to go home.
    pub away: u64,
    /// Objects in the racks between CPUs.
    pub racked: u64,
    /// Hits of the caches; counted under `HOMENODE_STATS=full` alone.
    pub hits: u64,
    /// Misses of the fast path.
    pub misses: u64,
    /// Objects that drains took from slabs.
    pub drained: u64,
    /// Objects that left a CPU for their home, another node.
    pub sent_home: u64,
}

impl Census {
    /// Counts; other threads may change the numbers meanwhile.
    #[must_use]
    pub fn take() -> Self {
        let mut census = Self::default();
        for (_, slice) in region::open_slices() {
            let [used, free, resident] = slice.census();
            census.compounds += u64::from(used);
            let parked = pageheap::large::parked(slice);
            census.compounds_free += u64::from(free + parked);
            census.compounds_resident += u64::from(resident + parked);
            let [cut, runs] = pageheap::census(slice);
            census.compounds_cut += u64::from(cut);
            census.runs += u64::from(runs);
            census.refcounts += pageheap::refcounts(slice);
            let [blocks, bytes, _] = pageheap::large::census(slice);
            census.large += blocks;
            census.large_bytes += bytes;
        }
        for class in Class::all() {
            census.add_class(&ClassCensus::of_pools(class));
        }
        for cpu in percpu::census() {
            census.add_cpu(&cpu);
        }
        census
    }

    fn add_class(&mut self, class: &ClassCensus) {
        self.spans += class.spans;
        self.out += class.out();
        self.out_bytes += class.out() * class.size;
        self.refills += class.refills;
        self.taken += class.taken;
        self.returned += class.returned;
        self.racked += class.racked;
    }

    fn add_cpu(&mut self, cpu: &percpu::CpuCensus) {
        self.cpus += u64::from(cpu.has_slab);
        self.slab_bytes += cpu.bytes as u64;
        self.cached += cpu.cached + cpu.away;
        self.away += cpu.away;
        let [hits, misses] = hits_and_misses(cpu);
        self.hits += hits;
        self.misses += misses;
        self.drained += cpu.drained;
        self.sent_home += cpu.sent_home;
    }

    pub(super) const fn fields(&self) -> [(&'static str, u64); 22] {
        [
            ("compounds", self.compounds),
            ("compounds_free", self.compounds_free),
            ("compounds_resident", self.compounds_resident),
            ("compounds_cut", self.compounds_cut),
            ("runs", self.runs),
            ("refcounts", self.refcounts),
            ("spans", self.spans),
            ("out", self.out),
            ("out_bytes", self.out_bytes),
            ("refills", self.refills),
            ("taken", self.taken),
            ("returned", self.returned),
            ("large", self.large),
            ("large_bytes", self.large_bytes),
            ("cpus", self.cpus),
            ("slab_bytes", self.slab_bytes),
            ("cached", self.cached),
            ("away", self.away),
            ("racked", self.racked),
            ("misses", self.misses),
            ("drained", self.drained),
            ("sent_home", self.sent_home),
        ]
    }
}

/// A CPU's hits, where they are counted, and its misses.
pub(super) fn hits_and_misses(cpu: &percpu::CpuCensus) -> [u64; 2] {
    if rseq::is_fast_path_closed() {
        // Each call is one of the slow path: those that the slab serves are the hits.
        [cpu.served, cpu.calls.saturating_sub(cpu.served)]
    } else {
        [0, cpu.calls]
    }
}

/// A class's numbers, of all nodes and CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassCensus {
    /// Bytes of an object.
    pub(super) size: u64,
    pub(super) spans: u64,
    /// Objects in the slabs of CPUs of their node.
    pub(super) cached: u64,
    pub(super) racked: u64,
    pub(super) refills: u64,
    pub(super) taken: u64,
    pub(super) returned: u64,
}

impl ClassCensus {
    /// The numbers of a class that was ever used.
    pub(super) fn of(class: Class) -> Option<Self> {
        let pools = Self::of_pools(class);
        (pools.taken > 0).then(|| Self { cached: percpu::cached(class), ..pools })
    }

    /// All but what CPUs cache.
    fn of_pools(class: Class) -> Self {
        let mut sums = Self {
            size: class.shape().size.into(),
            spans: 0,
            cached: 0,
            racked: 0,
            refills: 0,
            taken: 0,
            returned: 0,
        };
        for (_, slice) in region::open_slices() {
            let pool = slab::census(slice, class);
            sums.spans += u64::from(pool.spans);
            sums.refills += pool.refills;
            sums.taken += pool.taken;
            sums.returned += pool.returned;
            sums.racked += transfer::census(slice, class);
        }
        sums
    }

    /// Objects that are out of their spans.
    pub(super) const fn out(&self) -> u64 {
        self.taken.saturating_sub(self.returned)
    }
}

/// Checks that run maps, counts, lists and bitmaps of all nodes agree.  No other thread may allocate
/// meanwhile.  The number of objects out of their spans, or where the first disagreement is.
///
/// # Errors
/// The address of the run or compound whose records disagree.
pub fn check() -> Result<u64, usize> {
    let Some(_busy) = Busy::enter() else { return Ok(0) };
    let mut out = 0;
    for (_, slice) in region::open_slices() {
        pageheap::rebuild_check(slice).map_err(|id| slice.base() + id.offset())?;
        out += slab::check(slice).map_err(|run| slice.run_address(run))?;
    }
    Ok(out)
}

/// Lets `after` more system calls named `call` through, then fails one: for tests of callers.
/// False: there is no such call.
#[must_use]
pub fn fail_call(call: &str, after: u32) -> bool {
    fail_calls(call, after, 1)
}

/// As [`fail_call`], but fails `times` calls in a row.
#[must_use]
pub fn fail_calls(call: &str, after: u32, times: u32) -> bool {
    fault::fail_after(call, after, times)
}

/// System calls named `call` that are still let through before one is failed; none where none is to fail.
#[must_use]
pub fn calls_until_failure(call: &str) -> Option<u32> {
    fault::until_failure(call)
}
