//! Walks the spans of a class, and checks a whole node's spans against their records.

use super::pool::census;
use super::span::Span;
use crate::base::classes::Class;
use crate::base::config::RUNS_PER_COMPOUND;
use crate::base::ids::CompoundId;
use crate::base::sync::Ordering;
use crate::region::{self, Slice, State};

/// The runs where the spans of a class start.
pub(super) fn spans(slice: &Slice, class: Class) -> impl Iterator<Item = usize> {
    starts(slice).filter(move |&run| slice.class_byte(run).load(Ordering::Acquire) == class.byte())
}

/// The runs where spans of any class start.
fn starts(slice: &Slice) -> impl Iterator<Item = usize> {
    let compounds = (region::geometry().first..slice.frontier()).map(CompoundId);
    let cut = compounds.filter(|&id| slice.head(id).state() == State::Runs);
    cut.flat_map(|id| {
        let starts = slice.head(id).starts();
        (0..RUNS_PER_COMPOUND)
            .filter(move |run| starts >> run & 1 != 0)
            .map(move |run| id.0 as usize * RUNS_PER_COMPOUND + run)
    })
}

/// Calls `look` with the address of each object that is out, as the bits say at some moment.
pub(crate) fn objects_out(slice: &Slice, mut look: impl FnMut(usize)) {
    for run in starts(slice) {
        let byte = slice.class_byte(run).load(Ordering::Acquire);
        let Some(class) = Class::from_byte(byte) else { continue };
        let shape = class.shape();
        let out = (0..shape.objects).filter(|&index| Span::at(slice, run).is_out(index).is_ok());
        out.for_each(|index| look(slice.run_address(run) + (index * shape.size) as usize));
    }
}

/// Checks each span of a node: its bits, its count, its class bytes; and the pools' counts.  The objects
/// out, by bits; or the run of the first span that is wrong, 0 for the counts.  The heap must be at rest.
pub(crate) fn check(slice: &Slice) -> Result<u64, usize> {
    let mut out = 0;
    for run in starts(slice) {
        let class = Class::from_byte(slice.class_byte(run).load(Ordering::Relaxed)).ok_or(run)?;
        let shape = class.shape();
        let span = Span::at(slice, run);
        let same = (run..run + shape.runs as usize)
            .all(|run| slice.class_byte(run).load(Ordering::Relaxed) == class.byte());
        let listed = span.listed.load(Ordering::Relaxed) == 1;
        if !same || span.count(shape) != span.used() || listed != (span.used() < shape.objects) {
            return Err(run);
        }
        out += u64::from(span.used());
    }
    let counted: u64 = Class::all().map(|class| census(slice, class).out).sum();
    if counted == out { Ok(out) } else { Err(0) }
}
