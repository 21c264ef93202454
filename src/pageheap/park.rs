//! Parking: the last huge block that was freed on a CPU waits there for the next request of its length.
//!
//! A parked block keeps its compounds, its head's count and, but for the first head's state, all it had:
//! so a pair of malloc and free moves one word and one state.  It is not in the slice's maps.
//!
//! What is parked may be resident, so it must not stay for good.  The slow paths of a slot's own CPU count
//! for it, in turn those of CPUs that park nothing, and all calls that take or give large blocks below
//! the slots; after two birthdays without a use the block goes back to its slice.  A request that finds
//! no memory, a trim, and a large request for which too little that is free is resident empty all slots.

use crossbeam_utils::CachePadded;

use super::slot::{Parked, Slot};
use crate::base::config::{PARKING_SLOTS, PARKING_TICKS};
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::rseq;
use crate::topo;

/// A CPU's place.
#[derive(Debug)]
struct Seat {
    slot: Slot,
    /// Slow paths of its CPU; a lost count does no harm.
    ticks: AtomicU32,
    /// Node of its CPU, plus 1; 0 until that is known.
    node: AtomicU32,
}

static SEATS: [CachePadded<Seat>; PARKING_SLOTS] = [const {
    CachePadded::new(Seat { slot: Slot::new(), ticks: AtomicU32::new(0), node: AtomicU32::new(0) })
}; PARKING_SLOTS];
/// No seat from this number on was ever used.
static USED: AtomicU32 = AtomicU32::new(0);
/// Whose turn it is among the seats that were ever used.
static TURN: AtomicU32 = AtomicU32::new(0);
/// Calls that took or gave large blocks below the slots.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// The number of the calling thread's seat, and the node whose blocks it holds.
fn seat() -> Option<(usize, NodeIndex)> {
    let cpu = rseq::cpu_hint();
    if topo::nodes() == 1 {
        // Without a CPU number, threads are spread by where their stacks are.
        let number = cpu.map_or_else(rseq::thread_hint, CpuId::index);
        return Some((number % PARKING_SLOTS, NodeIndex::ZERO));
    }
    let cpu = cpu?;
    let word = &SEATS.get(cpu.index())?.node;
    let mut known = word.load(Ordering::Relaxed);
    if known == 0 {
        known = u32::try_from(topo::node_of(cpu)?.get()).ok()? + 1;
        word.store(known, Ordering::Relaxed);
    }
    Some((cpu.index(), NodeIndex::new(known as usize - 1)))
}

/// Parks a block of `node` on this CPU, if the CPU is of that node: what had been parked there.
pub(super) fn park(node: NodeIndex, block: Parked) -> Result<Option<Parked>, Parked> {
    let Some((number, _)) = seat().filter(|(_, home)| *home == node) else { return Err(block) };
    if number >= USED.load(Ordering::Relaxed) as usize {
        USED.fetch_max(u32::try_from(number + 1).unwrap_or(0), Ordering::Relaxed);
    }
    Ok(SEATS[number].slot.park(block))
}

/// Takes the block out that is parked on this CPU, if it has that many compounds and that alignment.
pub(super) fn retake(count: u32, align: usize) -> Option<usize> {
    if USED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let (number, _) = seat()?;
    SEATS[number].slot.retake(count, align)
}

/// Slots that were ever used.
fn slots() -> impl Iterator<Item = &'static Slot> {
    SEATS.iter().take(USED.load(Ordering::Relaxed) as usize).map(|seat| &seat.slot)
}

/// What is parked on any CPU.
pub(super) fn all() -> impl Iterator<Item = Parked> {
    slots().filter_map(Slot::peek)
}

/// Takes out what is parked on any CPU.
pub(super) fn empty() -> impl Iterator<Item = Parked> {
    slots().filter_map(Slot::empty)
}

/// Counts a slow path of this CPU; now and then, what has been parked there for long comes out, or
/// where nothing is, what has been parked on another CPU, each in its turn.
pub(super) fn tick() -> Option<Parked> {
    let used = USED.load(Ordering::Relaxed);
    if used == 0 {
        return None;
    }
    let seat = &SEATS[seat()?.0];
    if !count(&seat.ticks) {
        return None;
    }
    if seat.slot.peek().is_some() {
        return seat.slot.age();
    }
    let turn = TURN.fetch_add(1, Ordering::Relaxed) % used;
    SEATS[turn as usize].slot.age()
}

/// Counts a call that took or gave a large block below the slots; now and then, what has been parked
/// anywhere for long comes out.
pub(super) fn tick_all() -> impl Iterator<Item = Parked> {
    let is_due = count(&CALLS);
    slots().filter(move |_| is_due).filter_map(Slot::age)
}

fn count(ticks: &AtomicU32) -> bool {
    let count = ticks.load(Ordering::Relaxed).wrapping_add(1);
    ticks.store(count, Ordering::Relaxed);
    count.is_multiple_of(PARKING_TICKS)
}
