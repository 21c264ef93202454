//! A pool: the spans of one class on one node.
//!
//! Spans with a free object stand on the pool's list; full ones on none.  An empty span goes back to
//! the page heap unless it is short and the only one with room, so that a pair at the edge does not
//! thrash.
#![allow(unsafe_code, reason = "the node's record stands in its slice's metadata")]

use super::span::{Refusal, Span};
use crate::base::bits;
use crate::base::classes::{CLASSES, Class, Shape};
use crate::base::config::{
    NODE_RECORD_BYTES, PAGEHEAP_RECORD_BYTES, RUN_BYTES, RUN_SHIFT, RUNS_PER_COMPOUND,
    SPAN_KEPT_BYTES, TRANSFER_RECORD_BYTES,
};
use crate::base::ids::{CompoundId, NodeIndex};
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::pageheap::{self, RunsBack};
use crate::policy;
use crate::region::{self, Exhausted, Place, Slice};
use crate::sys::fatal::{Fault, misuse, not_a_start};
use crate::sys::lock::{Held, Lock, Rank};
use crate::sys::mem;

/// A class's spans on one node.  Zero bytes are an empty one.
#[repr(C, align(64))]
#[derive(Debug)]
struct Pool {
    lock: Lock,
    /// First span of the list, by run number; 0 is none.
    first: AtomicU32,
    /// Spans.
    spans: AtomicU32,
    /// Batches taken so far.
    refills: AtomicU64,
    /// Objects taken so far.
    taken: AtomicU64,
    /// Objects that came back so far.
    returned: AtomicU64,
}

/// A pool's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolCensus {
    /// Spans.
    pub(crate) spans: u32,
    /// Batches taken so far.
    pub(crate) refills: u64,
    /// Objects taken so far.
    pub(crate) taken: u64,
    /// Objects that came back so far.
    pub(crate) returned: u64,
    /// Objects that are out of their spans.
    pub(crate) out: u64,
}

fn pool(slice: &Slice, class: Class) -> &'static Pool {
    let pools = slice.node_record() + PAGEHEAP_RECORD_BYTES;
    // SAFETY: an open slice's node record has the pools behind the page heap's, zeroed at first.
    unsafe { mem::record(pools + class.index() * size_of::<Pool>()) }
}

/// Takes up to `objects.len()` objects of a class out of node `node`'s spans; how many, at least one.
pub(crate) fn take(
    node: NodeIndex,
    class: Class,
    objects: &mut [usize],
) -> Result<usize, Exhausted> {
    let slice = region::slice(node);
    slice.open()?;
    let pool = pool(slice, class);
    let _held = pool.enter(slice, class);
    pool.refills.store(pool.refills.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let shape = class.shape();
    let mut taken = 0;
    while taken < objects.len() {
        let mut run = pool.first.load(Ordering::Relaxed) as usize;
        if run == 0 {
            if taken > 0 {
                break;
            }
            run = pool.new_span(node, slice, class)?;
        }
        let span = Span::at(slice, run);
        taken += span.take(shape, slice.run_address(run), &mut objects[taken..]);
        if span.used() == shape.objects {
            pool.unlink(slice, run);
        }
    }
    pool.taken.store(pool.taken.load(Ordering::Relaxed) + taken as u64, Ordering::Relaxed);
    Ok(taken)
}

/// Takes objects of one class back into the spans of their home, `node`; runs that become free are
/// left in `back`.  A pointer that is no object's start, or an object that is not out, ends the
/// program with one line.
pub(crate) fn give(node: NodeIndex, class: Class, objects: &[usize], back: &mut Homecoming) {
    let slice = region::slice(node);
    let pool = pool(slice, class);
    let mut objects = objects.iter();
    let mut emptied = None;
    loop {
        // Runs go back without the pool's lock: a page heap may call the system.
        if let Some(run) = emptied.take() {
            back.add(node, run, class.shape());
        }
        let _held = pool.enter(slice, class);
        let mut last = (usize::MAX, 0);
        for &object in objects.by_ref() {
            emptied = pool.give_one(slice, class, object, &mut last);
            if emptied.is_some() {
                break;
            }
        }
        if emptied.is_none() {
            return;
        }
    }
}

/// Gives the spans without an object out back to the page heap.
pub(crate) fn trim(node: NodeIndex, back: &mut Homecoming) {
    let slice = region::slice(node);
    for class in Class::all() {
        let pool = pool(slice, class);
        while let Some(run) = pool.take_empty(slice, class) {
            back.add(node, run, class.shape());
        }
    }
}

/// Bytes of the object that starts at `place`, whose class is `class`; aborts when none starts there.
pub(crate) fn object_bytes(place: &Place, class: Class) -> usize {
    let (_, offset) = span_of(place, class.shape());
    let start = class.shape().index_of(offset);
    if start.is_none() {
        not_a_start(place.slice.base() + place.offset);
    }
    class.shape().size as usize
}

/// Whether the object of `class` that starts at `place` is out, as its bit says.
pub(crate) fn is_out(place: &Place, class: Class) -> Result<(), Refusal> {
    let (run, offset) = span_of(place, class.shape());
    let index = class.shape().index_of(offset).ok_or(Refusal::NeverOut)?;
    Span::at(place.slice, run).is_out(index)
}

/// The numbers of a class's pool on an open slice.
pub(crate) fn census(slice: &Slice, class: Class) -> PoolCensus {
    let pool = pool(slice, class);
    let [taken, returned] =
        [&pool.taken, &pool.returned].map(|counter| counter.load(Ordering::Relaxed));
    PoolCensus {
        spans: pool.spans.load(Ordering::Relaxed),
        refills: pool.refills.load(Ordering::Relaxed),
        taken,
        returned,
        out: taken.saturating_sub(returned),
    }
}

/// The run where the span around `place` starts, and the offset of `place` in it.
pub(super) fn span_of(place: &Place, shape: &Shape) -> (usize, usize) {
    let run = place.run();
    let start = if shape.runs == 1 { run } else { span_start(place.slice, run) };
    (start, place.offset - (start << RUN_SHIFT))
}

/// The run where the span around run `run` starts: the head's start bits say it.
#[expect(clippy::cast_possible_truncation, reason = "a run's place in its compound is below 64")]
fn span_start(slice: &Slice, run: usize) -> usize {
    let compound = run / RUNS_PER_COMPOUND;
    let within = (run % RUNS_PER_COMPOUND) as u32;
    let starts = slice.head(CompoundId(compound as u32)).starts();
    compound * RUNS_PER_COMPOUND
        + bits::last_set_at_or_below(starts, within).map_or(within, |at| at) as usize
}

impl Pool {
    fn enter(&'static self, slice: &Slice, class: Class) -> Held<'static> {
        let held = self.lock.enter(Rank::Pool);
        if held.orphaned() {
            self.rebuild(slice, class);
        }
        held
    }

    #[expect(clippy::cast_possible_truncation, reason = "a slice has at most 2^25 runs")]
    fn new_span(&self, node: NodeIndex, slice: &Slice, class: Class) -> Result<usize, Exhausted> {
        let shape = class.shape();
        let run = pageheap::take_runs(node, shape.runs)?;
        if policy::is_strict() {
            hold(node, run, shape)?;
        }
        Span::at(slice, run).begin(shape);
        for run in run..run + shape.runs as usize {
            // Release: who reads the class finds the span.
            slice.class_byte(run).store(class.byte(), Ordering::Release);
        }
        // Last: a child forked in between must not find a span whose class is half written.
        slice
            .head(CompoundId((run / RUNS_PER_COMPOUND) as u32))
            .start_span((run % RUNS_PER_COMPOUND) as u32);
        self.spans.fetch_add(1, Ordering::Relaxed);
        self.link(slice, run as u32);
        Ok(run)
    }

    /// Takes one object back; the run where its span started, if that is empty now and out of the pool.
    /// `last` is the run of the object before it and the run where that one's span starts: objects often
    /// come back together.
    fn give_one(
        &self,
        slice: &'static Slice,
        class: Class,
        object: usize,
        last: &mut (usize, usize),
    ) -> Option<usize> {
        let shape = class.shape();
        let place = Place { slice, node: NodeIndex::ZERO, offset: object - slice.base() };
        if place.run() != last.0 {
            if slice.class_byte(place.run()).load(Ordering::Relaxed) != class.byte() {
                // Its span has become another's while it waited here: it was free all the time.
                misuse(Fault::DoubleFree, object);
            }
            *last = (place.run(), span_of(&place, shape).0);
        }
        let run = last.1;
        let Some(index) = shape.index_of(place.offset - (run << RUN_SHIFT)) else {
            not_a_start(object)
        };
        let span = Span::at(slice, run);
        let used = match span.give(index) {
            Ok(used) => used,
            Err(Refusal::NeverOut) => misuse(Fault::NeverAllocated, object),
            Err(Refusal::NotOut) => misuse(Fault::DoubleFree, object),
        };
        let returned = self.returned.load(Ordering::Relaxed) + 1;
        self.returned.store(returned, Ordering::Relaxed);
        if span.listed.load(Ordering::Relaxed) == 0 {
            self.link(slice, u32::try_from(run).unwrap_or(0));
        }
        let alone = self.first.load(Ordering::Relaxed) as usize == run
            && span.next.load(Ordering::Relaxed) == 0;
        let is_kept = alone && shape.runs as usize * RUN_BYTES <= SPAN_KEPT_BYTES;
        if used > 0 || is_kept {
            return None;
        }
        self.end_span(slice, run, shape);
        Some(run)
    }

    /// Takes an empty span out of the pool, under its lock: from here on it is runs.
    #[expect(clippy::cast_possible_truncation, reason = "a slice has at most 2^25 runs")]
    fn end_span(&self, slice: &Slice, run: usize, shape: &Shape) {
        self.unlink(slice, run);
        self.spans.fetch_sub(1, Ordering::Relaxed);
        // First: a child forked in between finds runs without a span, and no half span.
        slice
            .head(CompoundId((run / RUNS_PER_COMPOUND) as u32))
            .end_span((run % RUNS_PER_COMPOUND) as u32);
        for run in run..run + shape.runs as usize {
            // From here on a free of an object there is "never allocated".
            slice.class_byte(run).store(0, Ordering::Relaxed);
        }
    }

    fn take_empty(&'static self, slice: &Slice, class: Class) -> Option<usize> {
        let _held = self.enter(slice, class);
        let mut run = self.first.load(Ordering::Relaxed) as usize;
        while run != 0 {
            let span = Span::at(slice, run);
            if span.used() == 0 {
                self.end_span(slice, run, class.shape());
                return Some(run);
            }
            run = span.next.load(Ordering::Relaxed) as usize;
        }
        None
    }

    fn link(&self, slice: &Slice, run: u32) {
        let span = Span::at(slice, run as usize);
        let old = self.first.load(Ordering::Relaxed);
        span.next.store(old, Ordering::Relaxed);
        span.prev.store(0, Ordering::Relaxed);
        span.listed.store(1, Ordering::Relaxed);
        if old != 0 {
            Span::at(slice, old as usize).prev.store(run, Ordering::Relaxed);
        }
        self.first.store(run, Ordering::Relaxed);
    }

    fn unlink(&self, slice: &Slice, run: usize) {
        let span = Span::at(slice, run);
        let next = span.next.load(Ordering::Relaxed);
        let prev = span.prev.load(Ordering::Relaxed);
        span.listed.store(0, Ordering::Relaxed);
        if next != 0 {
            Span::at(slice, next as usize).prev.store(prev, Ordering::Relaxed);
        }
        if prev == 0 {
            self.first.store(next, Ordering::Relaxed);
        } else {
            Span::at(slice, prev as usize).next.store(next, Ordering::Relaxed);
        }
    }

    /// After a fork: the list and the counts follow from class bytes, start bits and object bits.
    fn rebuild(&self, slice: &Slice, class: Class) {
        self.first.store(0, Ordering::Relaxed);
        let (mut spans, mut out) = (0, 0);
        for run in super::check::spans(slice, class) {
            let span = Span::at(slice, run);
            span.recount(class.shape());
            out += u64::from(span.used());
            if span.used() < class.shape().objects {
                self.link(slice, u32::try_from(run).unwrap_or(0));
            }
            spans += 1;
        }
        self.spans.store(spans, Ordering::Relaxed);
        self.taken.store(self.returned.load(Ordering::Relaxed) + out, Ordering::Relaxed);
    }
}

/// Has the pages of fresh runs made where the policy wants them; or gives the runs back.
#[cold]
#[inline(never)]
fn hold(node: NodeIndex, run: usize, shape: &Shape) -> Result<(), Exhausted> {
    let bytes = shape.runs as usize * RUN_BYTES;
    if region::slice(node).hold(run << RUN_SHIFT, bytes, policy::current().1) {
        return Ok(());
    }
    Homecoming::default().add(node, run, shape);
    Err(Exhausted)
}

/// Runs on their way back to the page heap, gathered while they are of one compound: one change of
/// its head for all.
#[derive(Debug, Default)]
pub(crate) struct Homecoming {
    runs: Option<(NodeIndex, RunsBack)>,
}

impl Homecoming {
    #[expect(clippy::cast_possible_truncation, reason = "a slice has at most 2^25 runs")]
    fn add(&mut self, node: NodeIndex, run: usize, shape: &Shape) {
        let compound = CompoundId((run / RUNS_PER_COMPOUND) as u32);
        let mask = bits::range((run % RUNS_PER_COMPOUND) as u32, shape.runs);
        match &mut self.runs {
            Some((home, runs)) if *home == node && runs.compound == compound => runs.mask |= mask,
            _ => {
                self.finish();
                self.runs = Some((node, RunsBack { compound, mask }));
            }
        }
    }

    /// Sends the gathered runs home.
    pub(crate) fn finish(&mut self) {
        if let Some((node, runs)) = self.runs.take() {
            pageheap::give_runs(node, runs);
        }
    }
}

impl Drop for Homecoming {
    fn drop(&mut self) {
        self.finish();
    }
}

const _: () = assert!(
    PAGEHEAP_RECORD_BYTES + CLASSES * size_of::<Pool>()
        <= NODE_RECORD_BYTES - TRANSFER_RECORD_BYTES
);
