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
use crate::{policy, topo};

/// A CPU's place.
#[derive(Debug)]
struct Seat {
    slot: Slot,
    /// Slow paths of its CPU; a lost count does no harm.
    ticks: AtomicU32,
    /// Node whose blocks it holds, plus 1, and above it the policy's token; 0 until that is known.
    home: AtomicU32,
}

static SEATS: [CachePadded<Seat>; PARKING_SLOTS] = [const {
    CachePadded::new(Seat { slot: Slot::new(), ticks: AtomicU32::new(0), home: AtomicU32::new(0) })
}; PARKING_SLOTS];
/// No seat from this number on was ever used.
static USED: AtomicU32 = AtomicU32::new(0);
/// Whose turn it is among the seats that were ever used.
static TURN: AtomicU32 = AtomicU32::new(0);
/// Calls that took or gave large blocks below the slots.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// A seat's number and the node whose blocks it holds: they fit a register, which saves a tenth of a pair.
type Place = (u16, NodeIndex);

/// The number of the calling thread's seat, and the node whose blocks it holds.  None where pages must be asked
/// where they are before a block is used again.
#[inline]
fn seat() -> Option<Place> {
    let cpu = rseq::cpu_hint();
    if topo::nodes() == 1 {
        // Without a CPU number, threads are spread by where their stacks are.
        let number = cpu.map_or_else(rseq::thread_hint, CpuId::index);
        return Some((wrapped(number), NodeIndex::ZERO));
    }
    seat_among_nodes(cpu?)
}

#[cold]
fn seat_among_nodes(cpu: CpuId) -> Option<Place> {
    if policy::is_strict() {
        return None;
    }
    let word = &SEATS.get(cpu.index())?.home;
    let known = word.load(Ordering::Relaxed);
    let token = policy::token();
    if known & 0xff != 0 && known >> 8 == token {
        return Some((wrapped(cpu.index()), NodeIndex::new((known & 0xff) as usize - 1)));
    }
    let home = policy::current().1.home(topo::node_of(cpu)?);
    word.store(u32::from(home.byte() + 1) | token << 8, Ordering::Relaxed);
    Some((wrapped(cpu.index()), home))
}

#[expect(clippy::cast_possible_truncation, reason = "reduced below 256")]
const fn wrapped(number: usize) -> u16 {
    (number % PARKING_SLOTS) as u16
}

/// Parks a block of `node` on this CPU, if the CPU is of that node: what had been parked there.
pub(super) fn park(node: NodeIndex, block: Parked) -> Result<Option<Parked>, Parked> {
    let Some((number, _)) = seat().filter(|(_, home)| *home == node) else { return Err(block) };
    let used = u32::from(number) + 1;
    if used > USED.load(Ordering::Relaxed) {
        USED.fetch_max(used, Ordering::Relaxed);
    }
    Ok(SEATS[usize::from(number)].slot.park(block))
}

/// Takes the block out that is parked on this CPU, if it has that many compounds and that alignment.
pub(super) fn retake(count: u32, align: usize) -> Option<usize> {
    if USED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let (number, _) = seat()?;
    SEATS[usize::from(number)].slot.retake(count, align)
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
    let seat = &SEATS[usize::from(seat()?.0)];
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
