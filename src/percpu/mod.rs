//! percpu: one slab a CPU, and what a miss of its fast path does.
//!
//! The fast path ([`crate::sys::arch`]) pops and pushes on the slab that `table[cpu]` points to.  No
//! word of a live slab is ever written by another CPU: who wants a CPU's objects flips its table entry
//! to another slab, waits until no section can still use the old one, and then owns the old one.

mod census;
mod cpus;
mod division;
mod drain;
mod flip;
mod slab;
#[cfg(test)]
mod tests;

pub(crate) use census::{CpuCensus, cached, cached_of, census};
pub(crate) use cpus::start;
pub use drain::{Drained, How};
pub(crate) use drain::{drain_all, drain_cpu, reclaim};

use crate::base::classes::{Class, REMOTE_CLASSES};
use crate::base::config::BATCH_MAX;
use crate::base::ids::NodeIndex;
use crate::policy::{self, Order, Plan, Turns};
use crate::region::Exhausted;
use crate::slab::{self as spans, Homecoming};
use crate::sys::arch::REMOTE_STACK;
use crate::sys::rseq;
use crate::{topo, transfer};
use cpus::{Seat, seat};

/// Hands out an object of a class after a miss: refills the CPU's slab, if this thread can use one.
pub(crate) fn allocate(class: Class) -> Result<usize, Exhausted> {
    let mut one = [0];
    let Some(seat) = seat() else {
        let plan = policy::current().1;
        let order =
            plan.order(if plan.is_spread() { TURNS.next(plan) } else { plan.home(topo::here()) });
        let (home, _) = take_first(order, |home| spans::take(home, class, &mut one))?;
        TURNS.note(plan, home, class.shape().size as usize);
        return Ok(one[0]);
    };
    allocate_at(&seat, class)
}

fn allocate_at(seat: &Seat, class: Class) -> Result<usize, Exhausted> {
    if let Some(home) = seat.overdue {
        send_overdue(seat, home);
    }
    let mut one = [0];
    // A slab that was just installed, or another CPU's, may have one.
    if rseq::pop(seat.cpu, class.index(), &mut one) == 1 {
        seat.note_served();
        return Ok(one[0]);
    }
    seat.note_refill(class);
    refill(seat, class)
}

/// Takes a batch from below; the first object is the caller's, the others go to the slab.  Apart from
/// [`allocate`], so that the batch is not on the stack while a slab is divided.
#[inline(never)]
fn refill(seat: &Seat, class: Class) -> Result<usize, Exhausted> {
    let mut batch = [0; BATCH_MAX];
    let wanted = (class.shape().batch as usize).min(seat.capacity(class) + 1);
    let plan = policy::current().1;
    let first = if plan.is_spread() { seat.turns().next(plan) } else { seat.node };
    let take = |home| transfer::take(home, seat.lane, class, &mut batch[..wanted]);
    let (home, got) = take_first(plan.order(first), take)?;
    seat.turns().note(plan, home, got * class.shape().size as usize);
    let rest = &mut batch[1..got];
    // The lowest address goes on top: it is the next to be handed out.
    rest.reverse();
    let is_kept = home == seat.node || plan.is_spread();
    let kept = if is_kept { rseq::push(seat.cpu, class.index(), rest) } else { 0 };
    if kept < rest.len() {
        give_back(home, class, &rest[kept..]);
    }
    Ok(batch[0])
}

/// Gives objects that a slab has no room for back to their spans.
#[cold]
#[inline(never)]
fn give_back(home: NodeIndex, class: Class, objects: &[usize]) {
    spans::give(home, class, objects, &mut Homecoming::default());
}

/// Hands out an object of a class of node `home` while that has memory, and then as `plan` says.  Past the slab,
/// unless that holds memory of that node alone.
pub(crate) fn allocate_on(home: NodeIndex, class: Class, plan: &Plan) -> Result<usize, Exhausted> {
    let own = if policy::is_mixed() { None } else { seat().filter(|seat| seat.node == home) };
    if let Some(seat) = own {
        return allocate_at(&seat, class);
    }
    let mut one = [0];
    take_first(plan.order(home), |home| spans::take(home, class, &mut one))?;
    Ok(one[0])
}

/// What threads without a seat took of each node, where memory is spread over several.
static TURNS: Turns = Turns::new();

/// Takes from the first node that has memory; which one that was, and what came.
fn take_first(
    mut order: Order,
    mut take: impl FnMut(NodeIndex) -> Result<usize, Exhausted>,
) -> Result<(NodeIndex, usize), Exhausted> {
    order.find_map(|home| take(home).ok().map(|got| (home, got))).ok_or(Exhausted)
}

/// Takes an object back after a miss: on its home's CPU it goes to the slab, elsewhere to the stack
/// of objects that go home.  A full stack gets more room where that pays, or else gives a batch to the
/// layers below; an object of a class that has no room at all goes there by itself.
pub(crate) fn free(object: usize, home: NodeIndex, class: Class) {
    let Some(seat) = seat() else {
        spans::give(home, class, &[object], &mut Homecoming::default());
        return;
    };
    if let Some(home) = seat.overdue {
        send_overdue(&seat, home);
    }
    if home != seat.node {
        free_away(&seat, object, home, class);
        return;
    }
    let push = || rseq::push(seat.cpu, class.index(), &[object]) == 1;
    if push() {
        seat.note_served();
        return;
    }
    if seat.note_overflow(class) && push() {
        return;
    }
    if seat.capacity(class) == 0 {
        // Large, and never wanted again so far: its memory may serve others.
        spans::give(home, class, &[object], &mut Homecoming::default());
        return;
    }
    overflow(&seat, class);
    if !push() {
        transfer::give(home, seat.lane, class, &[object], &mut Homecoming::default());
    }
}

/// Makes room for an object on its class's stack: a batch goes to the layers below.
#[inline(never)]
fn overflow(seat: &Seat, class: Class) {
    let wanted = class.shape().batch as usize;
    if policy::is_mixed() {
        send_down::<BATCH_MAX>(seat, class.index(), wanted);
        return;
    }
    let mut batch = [0; BATCH_MAX];
    let got = rseq::pop(seat.cpu, class.index(), &mut batch[..wanted]);
    if got > 0 {
        transfer::give(seat.node, seat.lane, class, &batch[..got], &mut Homecoming::default());
    }
}

/// Takes back an object of another node, which waits on its stack to go home with others.
fn free_away(seat: &Seat, object: usize, home: NodeIndex, class: Class) {
    if class.index() > REMOTE_CLASSES {
        seat.note_sent_home(1);
        spans::give(home, class, &[object], &mut Homecoming::default());
        return;
    }
    let push = || rseq::push(seat.cpu, REMOTE_STACK + home.get(), &[object]) == 1;
    if push() {
        seat.note_served();
        return;
    }
    seat.note_leaving(home);
    seat.note_sent_home(send_down::<BATCH_MAX>(seat, REMOTE_STACK + home.get(), BATCH_MAX));
    if !push() {
        seat.note_sent_home(1);
        transfer::give(home, seat.lane, class, &[object], &mut Homecoming::default());
    }
}

/// Sends some of the objects home that have waited for long: few at once, on less stack than others have.
#[cold]
#[inline(never)]
fn send_overdue(seat: &Seat, home: NodeIndex) {
    const FEW: usize = BATCH_MAX / 4;
    seat.note_sent_home(send_down::<FEW>(seat, REMOTE_STACK + home.get(), FEW));
}

/// Makes room on a stack of objects of several classes or nodes: `wanted` of them go home, at most `MOST`; how
/// many did.
#[inline(never)]
fn send_down<const MOST: usize>(seat: &Seat, stack: usize, wanted: usize) -> usize {
    let mut batch = [0; MOST];
    let got = rseq::pop(seat.cpu, stack, &mut batch[..wanted]);
    let mut back = Homecoming::default();
    transfer::sort(&mut batch[..got], |home, class, batch| {
        transfer::give(home, seat.lane, class, batch, &mut back);
    });
    got
}
