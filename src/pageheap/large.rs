//! Large blocks: whole compounds, resident only where touched.  The last one that was freed on a CPU is
//! parked there (see [`super::park`]); others go back to their slice.

use core::ops::Range;

use super::park;
use super::runs::compounds;
use super::slot::{self, Parked};
use crate::base::config::{COMPOUND_BYTES, SPREAD_FROM};
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::sync::Ordering;
use crate::policy::{self, Plan, Turns};
use crate::region::{self, Exhausted, Place, Slice, State};
use crate::sys::fatal::{Fault, misuse};
use crate::sys::mem;

/// A large block that was handed out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Large {
    /// Its first byte.
    pub(crate) address: usize,
    /// True when every byte is zero.
    pub(crate) zeroed: bool,
}

/// What a block is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// A block of its length.
    Block,
    /// The new place of a block that grows, and may grow again.
    Growth,
}

/// Hands out `bytes`, rounded up to base pages, at a multiple of `align` (a power of two), as `plan` places them.
pub(crate) fn take(
    node: NodeIndex,
    bytes: usize,
    align: usize,
    want: Want,
    plan: &Plan,
) -> Result<Large, Exhausted> {
    let slice = region::slice(node);
    slice.open()?;
    let bytes = page_rounded(bytes)?;
    let count = compounds_of(bytes)?;
    let align = u32::try_from(align.div_ceil(COMPOUND_BYTES)).map_err(|_| Exhausted)?;
    age();
    if slice.census()[2] < count {
        // Fresh memory would be used, while some that is resident is parked.
        empty_slots();
    }
    let taken = match want {
        Want::Block => slice.take(count, align.max(1))?,
        Want::Growth => slice.take_growing(count, align.max(1))?,
    };
    begin(slice, taken.first, count, bytes);
    let place = Place { slice, node, offset: taken.first.offset() };
    if !settle(&place, 0..bytes, plan) {
        end(&place, count, Pages::Kept);
        return Err(Exhausted);
    }
    TURNS.note(plan, node, bytes);
    Ok(Large { address: slice.base() + place.offset, zeroed: taken.zeroed })
}

/// What was taken of each node for large blocks, where memory is spread over several.
pub(crate) static TURNS: Turns = Turns::new();

/// Places the pages of `fresh` bytes of the block that starts at `place`, its last ones, as `plan` says; false
/// where they cannot be.
fn settle(place: &Place, fresh: Range<usize>, plan: &Plan) -> bool {
    if plan.is_strict() {
        return place.slice.hold(place.offset + fresh.start, fresh.len(), plan);
    }
    let count = compounds_of(fresh.end).unwrap_or(0);
    if plan.is_spread() && count >= SPREAD_FROM && region::can_spread() {
        // Those that were handed out before may have pages where they are.
        let had = compounds_of(fresh.start).unwrap_or(count);
        place.slice.empty(CompoundId(place.compound().0 + had), count - had);
        // First, and for good: a part may be spread where the rest is refused.
        place.slice.head(place.compound()).note_spread(true);
        place.slice.spread(place.compound(), count, plan);
    }
    true
}

/// Places the pages that a spread block does not have yet.
fn place_anew(place: &Place, plan: &Plan) {
    let count = compounds_of(usable(place)).unwrap_or(0);
    if plan.is_spread() {
        place.slice.spread(place.compound(), count, plan);
    }
}

/// Whether the compounds of a block that ends have pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pages {
    Kept,
    Moved,
}

/// Gives the compounds of a block that ends back to their slice.
fn end(place: &Place, count: u32, pages: Pages) {
    let first = place.compound();
    let head = place.slice.head(first);
    head.lower(1);
    if head.is_spread() {
        head.note_spread(false);
        place.slice.gather(place.node, first, count);
        place.slice.put_empty(first, count);
    } else if pages == Pages::Moved {
        place.slice.put_empty(first, count);
    } else {
        place.slice.put(first, count);
    }
}

/// Marks compounds as one large block.
pub(super) fn begin(slice: &Slice, first: CompoundId, count: u32, bytes: usize) {
    for number in 1..count {
        mark_rest(slice, first, number);
    }
    let head = slice.head(first);
    head.large.store(bytes as u64, Ordering::Relaxed);
    head.begin_count(1);
    head.transit(State::Unused, State::LargeFirst);
}

/// Makes a block that was just handed out read zeros, at the system's cost: clearing it here would
/// take as long as touching it all, and make it all resident.  False: the system refuses, the block
/// is a handler's and has no pages of its own, or its pages must stay where they are.
pub(crate) fn empty(address: usize) -> bool {
    region::locate(address)
        .filter(|place| starts_at(place) && !policy::is_strict())
        .is_some_and(|place| mem::decommit(address, usable(&place)).is_ok())
}

fn mark_rest(slice: &Slice, first: CompoundId, number: u32) {
    let head = slice.head(CompoundId(first.0 + number));
    head.large.store(u64::from(number), Ordering::Relaxed);
    head.transit(State::Unused, State::LargeRest);
}

fn page_rounded(bytes: usize) -> Result<usize, Exhausted> {
    // A page is a power of two; a division would take as long as the rest.
    let past = region::geometry().page - 1;
    bytes.max(1).checked_add(past).map(|bytes| bytes & !past).ok_or(Exhausted)
}

fn compounds_of(bytes: usize) -> Result<u32, Exhausted> {
    u32::try_from(bytes.div_ceil(COMPOUND_BYTES)).map_err(|_| Exhausted)
}

/// Usable bytes of the block that starts at `place`.
#[expect(clippy::cast_possible_truncation, reason = "it was a usize")]
pub(crate) fn usable(place: &Place) -> usize {
    place.slice.head(place.compound()).large.load(Ordering::Relaxed) as usize
}

/// True when a large block starts at `place`.
pub(crate) fn starts_at(place: &Place) -> bool {
    place.starts_compound() && place.slice.head(place.compound()).state() == State::LargeFirst
}

/// Takes back the block that starts at `place`.
pub(crate) fn give(place: &Place) {
    let count = usable(place).div_ceil(COMPOUND_BYTES);
    let head = place.slice.head(place.compound());
    if !head.try_transit(State::LargeFirst, State::Unused) {
        // Another thread freed it between the look at the state and here.
        misuse(Fault::DoubleFree, place.slice.base() + place.offset);
    }
    end(place, u32::try_from(count).unwrap_or(0), Pages::Kept);
    age();
}

/// Parks the block that starts at `place` on this CPU, without a lock.  What is to be taken back by
/// [`give`] now, by its address: what was parked there before, or the block itself if it cannot be parked.
pub(crate) fn park(place: Place) -> Option<usize> {
    let address = place.slice.base() + place.offset;
    let count = compounds_of(usable(&place)).unwrap_or(u32::MAX);
    if count > slot::COUNT_MAX {
        return Some(address);
    }
    let head = place.slice.head(place.compound());
    if !head.try_transit(State::LargeFirst, State::Parked) {
        // Another thread freed it between the look at the state and here.
        misuse(Fault::DoubleFree, address);
    }
    let left = match park::park(place.node, Parked { address, count }) {
        Ok(before) => before?,
        Err(refused) => refused,
    };
    let place = region::locate(left.address)?;
    place.slice.head(place.compound()).transit(State::Parked, State::LargeFirst);
    Some(left.address)
}

/// Hands out the block that is parked on this CPU, if it has the length that `bytes` need and the
/// alignment; its address.  Takes no lock.
pub(crate) fn retake(bytes: usize, align: usize) -> Option<usize> {
    let bytes = page_rounded(bytes).ok()?;
    let address = park::retake(compounds_of(bytes).ok()?, align)?;
    let place = region::locate(address)?;
    let head = place.slice.head(place.compound());
    head.large.store(bytes as u64, Ordering::Relaxed);
    head.transit(State::Parked, State::LargeFirst);
    Some(address)
}

#[cold]
fn retire(parked: Parked) {
    if let Some(place) = region::locate(parked.address) {
        end(&place, parked.count, Pages::Kept);
    }
}

/// Gives back what is parked on any CPU.
#[cold]
pub(crate) fn empty_slots() {
    park::empty().for_each(retire);
}

/// Counts a slow path: what has been parked on this CPU for long goes back.
pub(crate) fn tick() {
    if let Some(parked) = park::tick() {
        retire(parked);
    }
}

#[cold]
fn age() {
    park::tick_all().for_each(retire);
}

/// Compounds of a slice that are parked.
pub(crate) fn parked(slice: &Slice) -> u32 {
    let homes = park::all().filter_map(|block| Some((region::locate(block.address)?, block.count)));
    homes.filter(|(place, _)| core::ptr::eq(place.slice, slice)).map(|(_, count)| count).sum()
}

/// Large blocks of a slice that are out, their bytes, and the compounds that handlers' blocks are cut from.
pub(crate) fn census(slice: &Slice) -> [u64; 3] {
    compounds(slice).fold([0, 0, 0], |[blocks, bytes, emergency], (_, head)| match head.state() {
        State::LargeFirst => [blocks + 1, bytes + head.large.load(Ordering::Relaxed), emergency],
        State::Emergency => [blocks, bytes, emergency + 1],
        _ => [blocks, bytes, emergency],
    })
}

/// Brings what the block at `from` holds to the longer one at `to`, and takes the first one back; by
/// moving pages where that can be.  False, and nothing is done: these are not two large blocks of one node,
/// or the second one's pages must stay where they are.
pub(crate) fn relocate(from: &Place, to: &Place) -> bool {
    let plan = policy::current().1;
    let are_large = starts_at(from) && starts_at(to);
    if !are_large || !core::ptr::eq(from.slice, to.slice) || plan.is_strict() {
        return false;
    }
    let bytes = usable(from);
    debug_assert!(bytes <= usable(to), "the block would be brought over the next one");
    if !from.slice.bring(from.compound(), to.compound(), bytes) {
        give(from);
        return true;
    }
    // Pages bring the policy with them that they had.
    let [was_spread, is_spread] =
        [from, to].map(|place| place.slice.head(place.compound()).is_spread());
    if was_spread && !is_spread {
        to.slice.head(to.compound()).note_spread(true);
    } else if is_spread {
        place_anew(to, plan);
    }
    end(from, compounds_of(bytes).unwrap_or(0), Pages::Moved);
    true
}

/// Changes the length of the block that starts at `place` without moving it, if that is possible.
/// What is cut off goes back.
pub(crate) fn resize(place: &Place, bytes: usize) -> bool {
    let Ok(bytes) = page_rounded(bytes) else { return false };
    let old = usable(place);
    let (Ok(had), Ok(wanted)) = (compounds_of(old), compounds_of(bytes)) else { return false };
    let first = place.compound();
    if bytes > old && !extend(place, (had, wanted), old..bytes) {
        return false;
    }
    if wanted < had {
        let tail = CompoundId(first.0 + wanted);
        if place.slice.head(first).is_spread() {
            place.slice.gather(place.node, tail, had - wanted);
        }
        place.slice.put(tail, had - wanted);
    }
    place.slice.head(first).large.store(bytes as u64, Ordering::Relaxed);
    let kept = (wanted as usize * COMPOUND_BYTES).min(old);
    if bytes < kept {
        // The tail of the last compound; a refusal leaves it resident until the block goes.
        let _ = mem::decommit(place.slice.base() + place.offset + bytes, kept - bytes);
    }
    true
}

/// Gives a block of `had` compounds those after it up to `wanted`, and places the pages of its `fresh` bytes.
fn extend(place: &Place, (had, wanted): (u32, u32), fresh: Range<usize>) -> bool {
    let first = place.compound();
    let next = CompoundId(first.0 + had);
    if wanted > had && !place.slice.take_at(next, wanted - had) {
        return false;
    }
    for number in had..wanted {
        mark_rest(place.slice, first, number);
    }
    let is_settled = settle(place, fresh, policy::current().1);
    if !is_settled && wanted > had {
        place.slice.put(next, wanted - had);
    }
    is_settled
}
