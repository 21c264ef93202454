//! Large blocks: whole compounds, resident only where touched, given back to the system when freed.

use crate::base::config::COMPOUND_BYTES;
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::sync::Ordering;
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

/// Hands out `bytes`, rounded up to base pages, at a multiple of `align` (a power of two).
pub(crate) fn take(node: NodeIndex, bytes: usize, align: usize) -> Result<Large, Exhausted> {
    let slice = region::slice(node);
    slice.open(node)?;
    let bytes = page_rounded(bytes)?;
    let count = compounds_of(bytes)?;
    let align = u32::try_from(align.div_ceil(COMPOUND_BYTES)).map_err(|_| Exhausted)?;
    let taken = slice.take(count, align.max(1))?;
    begin(slice, taken.first, count, bytes);
    Ok(Large { address: slice.base() + taken.first.offset(), zeroed: taken.zeroed })
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

fn mark_rest(slice: &Slice, first: CompoundId, number: u32) {
    let head = slice.head(CompoundId(first.0 + number));
    head.large.store(u64::from(number), Ordering::Relaxed);
    head.transit(State::Unused, State::LargeRest);
}

fn page_rounded(bytes: usize) -> Result<usize, Exhausted> {
    bytes.max(1).checked_next_multiple_of(region::geometry().page).ok_or(Exhausted)
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
    head.lower(1);
    place.slice.put(place.compound(), u32::try_from(count).unwrap_or(0));
}

/// Changes the length of the block that starts at `place` without moving it, if that is possible.
/// What is cut off goes back.
pub(crate) fn resize(place: &Place, bytes: usize) -> bool {
    let Ok(bytes) = page_rounded(bytes) else { return false };
    let old = usable(place);
    let (Ok(had), Ok(wanted)) = (compounds_of(old), compounds_of(bytes)) else { return false };
    let first = place.compound();
    if wanted > had {
        if !place.slice.take_at(CompoundId(first.0 + had), wanted - had) {
            return false;
        }
        for number in had..wanted {
            mark_rest(place.slice, first, number);
        }
    } else if wanted < had {
        place.slice.put(CompoundId(first.0 + wanted), had - wanted);
    }
    place.slice.head(first).large.store(bytes as u64, Ordering::Relaxed);
    let kept = (wanted as usize * COMPOUND_BYTES).min(old);
    if bytes < kept {
        // The tail of the last compound; a refusal leaves it resident until the block goes.
        let _ = mem::decommit(place.slice.base() + place.offset + bytes, kept - bytes);
    }
    true
}
