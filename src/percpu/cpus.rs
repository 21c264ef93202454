//! CPUs: the table of slabs, a record each, and the flips (see [`super::flip`]) on real sections.
#![allow(unsafe_code, reason = "records and table entries at computed addresses")]

pub(super) use super::flip::Phase;

use crossbeam_utils::CachePadded;

use super::census::CpuCensus;
use super::division::Division;
use super::drain::empty;
use super::flip::Flip;
use super::slab::Slab;
use crate::base::classes::Class;
use crate::base::config::{AWAY_TICKS, BATCH_MAX};
use crate::base::ids::{CpuId, LaneId, NodeIndex};
use crate::base::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::policy::Turns;
use crate::slab::Homecoming;
use crate::sys::arch::{HOT, REMOTE_STACK, STACKS};
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::{mem, process, rseq};
use crate::{policy, region, slab, topo, transfer};

/// A CPU's record.  Zero bytes are an absent one.
#[derive(Debug)]
pub(super) struct Cpu {
    lock: Lock,
    flip: Flip,
    division: Division,
    /// Lane; 0 until it is looked up, at the [`LANE_MISSES`]th miss.
    lane: AtomicU32,
    generation: AtomicUsize,
    /// The CPU's own node, known with its first slab: its slabs stand there.
    own: AtomicU32,
    /// Token of the policy that chose the node whose memory it caches.
    policy: AtomicU32,
    /// What was taken of each node, where memory is spread over several.
    turns: Turns,
    /// Calls that came here.
    calls: AtomicU64,
    /// Of those, calls that the slab served after all.  While the fast path is closed that are its hits.
    served: AtomicU64,
    /// Objects that drains took.
    pub(super) drained: AtomicU64,
    /// Objects that left for their home, another node than this CPU's.
    sent_home: AtomicU64,
    /// Bit n: objects left for node n since that was last looked at.
    leaving: AtomicU64,
}

/// A thread's place on a CPU that has a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) cpu: CpuId,
    pub(super) node: NodeIndex,
    pub(super) lane: LaneId,
    /// The node whose objects have waited on this CPU for long.
    pub(super) overdue: Option<NodeIndex>,
    record: &'static Cpu,
}

/// Misses of a CPU before it asks the system which cache it shares: short programs never do.
const LANE_MISSES: u64 = 256;

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
    let calls = count_one(&record.calls);
    if matches!(record.phase(), Phase::Absent | Phase::Asked) {
        record.settle(cpu)?;
    } else if record.policy.load(Ordering::Relaxed) != policy::token() {
        record.rehome(cpu);
    }
    if calls == LANE_MISSES {
        record.look_up_lane(cpu);
    }
    let overdue = record.overdue(calls);
    Some(Seat { cpu, node: record.node(), lane: record.lane(), overdue, record })
}

/// Counts one up; what was counted before.  By threads of the CPU alone, but for one that has just moved: a
/// count may be lost.
fn count_one(counter: &AtomicU64) -> u64 {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before + 1, Ordering::Relaxed);
    before
}

impl Seat {
    /// Notes that the slab served a call of the slow path.
    pub(super) fn note_served(&self) {
        count_one(&self.record.served);
    }

    /// Notes that objects left for their home.
    pub(super) fn note_sent_home(&self, objects: usize) {
        self.record.note_sent_home(objects);
    }

    /// Notes that so many objects of `home` come that they need not wait for long.
    pub(super) fn note_leaving(&self, home: NodeIndex) {
        self.record.leaving.fetch_or(1 << home.get(), Ordering::Relaxed);
    }

    /// Whose turn it is for this CPU, where memory is spread over nodes.
    pub(super) fn turns(&self) -> &Turns {
        &self.record.turns
    }

    /// Tells the CPU that a class ran out; a slab that has too little of it is divided anew.
    pub(super) fn note_refill(&self, class: Class) {
        if self.record.division.note_refill(class) {
            self.record.grow(self.cpu, class);
        }
    }

    /// Tells the CPU that a class ran over; true when there is more room now.
    pub(super) fn note_overflow(&self, class: Class) -> bool {
        self.record.division.note_overflow(class) && self.record.grow(self.cpu, class)
    }

    /// Objects of a class that the CPU's slab has room for.
    pub(super) fn capacity(&self, class: Class) -> usize {
        self.record.division.capacity(class.index())
    }
}

impl Cpu {
    /// The record's numbers, unless the CPU never had a slab.
    pub(super) fn census(&self, cpu: CpuId) -> Option<CpuCensus> {
        let [calls, served, drained, sent_home] =
            [&self.calls, &self.served, &self.drained, &self.sent_home]
                .map(|counter| counter.load(Ordering::Relaxed));
        (self.phase() != Phase::Absent || calls > 0).then(|| CpuCensus {
            cpu,
            node: self.node(),
            has_slab: self.slabs().next().is_some(),
            bytes: self.division.bytes(),
            cached: (0..REMOTE_STACK).map(|stack| self.objects(stack)).sum(),
            away: (REMOTE_STACK..STACKS).map(|stack| self.objects(stack)).sum(),
            calls,
            served,
            drained,
            sent_home,
        })
    }

    /// Objects on a stack, of the slab in use and of one that a drain waits for.
    pub(super) fn objects(&self, stack: usize) -> u64 {
        self.slabs().map(|slab| slab.len(stack) as u64).sum()
    }

    /// The slab in use.
    pub(super) fn live(&self) -> Option<Slab> {
        Some(self.flip.live()).filter(|&slab| slab != 0).map(Slab)
    }

    fn slabs(&self) -> impl Iterator<Item = Slab> {
        self.flip.full().into_iter().filter(|&slab| slab != 0).map(Slab)
    }

    /// The node whose objects have waited on this CPU for long, if it is time to look, and they have; at the
    /// slow path number `calls`.
    fn overdue(&self, calls: u64) -> Option<NodeIndex> {
        if calls.is_multiple_of(AWAY_TICKS) && topo::nodes() > 1 {
            self.look_away(calls / AWAY_TICKS)
        } else {
            None
        }
    }

    #[cold]
    fn look_away(&self, looks: u64) -> Option<NodeIndex> {
        let node = NodeIndex::new(usize::try_from(looks % topo::nodes() as u64).unwrap_or(0));
        let bit = 1 << node.get();
        let left = self.leaving.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        (!left && self.objects(REMOTE_STACK + node.get()) > 0).then_some(node)
    }

    fn note_sent_home(&self, objects: usize) {
        self.sent_home.fetch_add(objects as u64, Ordering::Relaxed);
    }

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
            self.division.forget();
        }
    }

    /// An empty slab for this CPU, of `spare` if that is none; under the flip lock.
    fn build(&self, cpu: CpuId, spare: usize) -> Option<usize> {
        let slab = if spare == 0 {
            let own = NodeIndex::new(self.own.load(Ordering::Relaxed) as usize);
            let slice = region::slice(topo::nearest(own, topo::usable()).unwrap_or(own));
            slice.open().ok()?;
            Slab::room(slice)?
        } else {
            Slab(spare)
        };
        self.division.begin(Slab::words());
        let generation = self.generation.fetch_add(1, Ordering::Relaxed);
        let node = self.node();
        slab.divide(region::slice(node), &self.division, (node, cpu), generation);
        Some(slab.0)
    }

    /// On the CPU itself: divides its slab anew, so that a class has more room.
    #[cold]
    fn grow(&'static self, cpu: CpuId, class: Class) -> bool {
        let Some(held) = self.lock.try_enter(Rank::Flip) else { return false };
        self.recover(&held, cpu);
        if self.phase() != Phase::Live || !self.division.grow(class, Slab::words()) {
            return false;
        }
        let Some(old) = self.flip_own(cpu) else { return false };
        let mut back = Homecoming::default();
        for stack in 0..STACKS {
            // SAFETY: the flip in a section of the CPU proved that no section uses the old slab.
            let objects = unsafe { old.take_stack(stack) };
            if objects.is_empty() {
                continue;
            }
            // Room was taken from some, or this thread runs elsewhere by now.
            let kept = rseq::push(cpu, stack, objects);
            self.send_home(stack, &mut objects[kept..], &mut back);
        }
        self.keep(old);
        true
    }

    /// Sends objects of one stack to the spans of their homes.
    pub(super) fn send_home(&self, stack: usize, objects: &mut [usize], back: &mut Homecoming) {
        if stack >= REMOTE_STACK {
            self.note_sent_home(objects.len());
        }
        if stack >= REMOTE_STACK || policy::is_mixed() {
            for some in objects.chunks_mut(BATCH_MAX) {
                transfer::sort(some, |home, class, batch| slab::give(home, class, batch, back));
            }
        } else if let Some(class) = u8::try_from(stack).ok().and_then(Class::from_byte)
            && !objects.is_empty()
        {
            slab::give(self.node(), class, objects, back);
        }
    }

    fn lane(&self) -> LaneId {
        LaneId::new(self.lane.load(Ordering::Relaxed) as usize)
    }

    #[cold]
    fn look_up_lane(&self, cpu: CpuId) {
        let lane = topo::lane_of(cpu);
        self.lane.store(u32::try_from(lane.get()).unwrap_or(0), Ordering::Relaxed);
    }

    /// On the CPU itself: gives an absent CPU its first slab, or answers a drain that asks.
    #[cold]
    fn settle(&'static self, cpu: CpuId) -> Option<()> {
        let held = self.lock.try_enter(Rank::Flip)?;
        self.recover(&held, cpu);
        // SAFETY: the flip lock is held, and the slab is metadata that stays.
        let flip = |slab| unsafe { rseq::flip(cpu, miss(), slab) };
        let home = || {
            let own = topo::node_of(cpu)?;
            self.own.store(own.byte().into(), Ordering::Relaxed);
            Some(self.choose_home(own))
        };
        self.flip.settle(home, |spare| self.build(cpu, spare), flip)
    }

    /// The node whose memory a CPU of node `own` caches, as the policy is now.
    fn choose_home(&self, own: NodeIndex) -> NodeIndex {
        // Before the policy is asked: when it changes in between, it is asked again.
        self.policy.store(policy::token(), Ordering::Relaxed);
        policy::current().1.home(own)
    }

    /// On the CPU itself, after the policy changed: caches memory of the node that it says, and what was cached goes
    /// home, of whatever node it is.  Where it cannot be now, the next slow path tries again.
    #[cold]
    fn rehome(&'static self, cpu: CpuId) {
        let Some(held) = self.lock.try_enter(Rank::Flip) else { return };
        self.recover(&held, cpu);
        if self.phase() != Phase::Live {
            return;
        }
        let before = self.policy.load(Ordering::Relaxed);
        let home = self.choose_home(NodeIndex::new(self.own.load(Ordering::Relaxed) as usize));
        // SAFETY: as in `settle`.
        let flip = |old, slab| unsafe { rseq::flip(cpu, old, slab) };
        match self.flip.rehome(home, |spare| self.build(cpu, spare), flip) {
            Some(old) => {
                empty(self, Slab(old), &|_| ());
            }
            None => self.policy.store(before, Ordering::Relaxed),
        }
    }

    /// Flips the CPU, which is this thread's own, to an empty slab.  The old one is the caller's.
    pub(super) fn flip_own(&self, cpu: CpuId) -> Option<Slab> {
        // SAFETY: as in `settle`; the caller holds the flip lock.
        let flip = |old, slab| unsafe { rseq::flip(cpu, old, slab) };
        self.flip.exchange(|spare| self.build(cpu, spare), flip).map(Slab)
    }

    /// Flips the CPU to the slab that misses: from here on its next slow path answers.  False: there is
    /// no memory for the slab that comes after.
    pub(super) fn ask(&self, cpu: CpuId) -> bool {
        self.flip.ask(entry(cpu), miss(), |spare| self.build(cpu, spare))
    }

    /// The slab that was asked for, once nobody uses it; the CPU is live again.
    pub(super) fn collect(&self, cpu: CpuId) -> Option<Slab> {
        self.flip.collect(entry(cpu), |spare| self.build(cpu, spare)).map(Slab)
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
