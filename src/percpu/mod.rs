//! percpu: one slab a CPU, and what a miss of its fast path does.
//!
//! The fast path ([`crate::sys::arch`]) pops and pushes on the slab that `table[cpu]` points to.  No
//! word of a live slab is ever written by another CPU: who wants a CPU's objects flips its table entry
//! to another slab, waits until no section can still use the old one, and then owns the old one.

mod cpus;
mod drain;
mod flip;
mod slab;
#[cfg(test)]
mod tests;

pub(crate) use cpus::{census, start};
pub use drain::{Drained, How};
pub(crate) use drain::{drain_all, drain_cpu, reclaim};

use crate::base::classes::Class;
use crate::base::config::{BATCH_MAX, REMOTE_BYTES_EACH};
use crate::base::ids::NodeIndex;
use crate::region::Exhausted;
use crate::slab::Homecoming;
use crate::sys::arch::REMOTE_STACK;
use crate::sys::rseq;
use crate::{topo, transfer};
use cpus::seat;

/// Hands out an object of a class after a miss: refills the CPU's slab, if this thread can use one.
pub(crate) fn allocate(class: Class) -> Result<usize, Exhausted> {
    let mut batch = [0; BATCH_MAX];
    let Some(seat) = seat() else {
        take_near(topo::here(), class, &mut batch[..1])?;
        return Ok(batch[0]);
    };
    // A slab that was just installed, or another CPU's, may have one.
    if rseq::pop(seat.cpu, class.index(), &mut batch[..1]) == 1 {
        return Ok(batch[0]);
    }
    let wanted = class.shape().batch as usize;
    let (home, got) = take_near(seat.node, class, &mut batch[..wanted])?;
    let rest = &mut batch[1..got];
    // The lowest address goes on top: it is the next to be handed out.
    rest.reverse();
    let kept = if home == seat.node { rseq::push(seat.cpu, class.index(), rest) } else { 0 };
    if kept < rest.len() {
        transfer::give(home, class, &rest[kept..], &mut Homecoming::default());
    }
    Ok(batch[0])
}

/// Takes a batch from `node`, or from the next node that has memory; which one that was.
fn take_near(
    node: NodeIndex,
    class: Class,
    batch: &mut [usize],
) -> Result<(NodeIndex, usize), Exhausted> {
    let nodes = topo::nodes();
    for step in 0..nodes {
        let home = NodeIndex::new((node.get() + step) % nodes);
        if let Ok(got) = transfer::take(home, class, batch) {
            return Ok((home, got));
        }
    }
    Err(Exhausted)
}

/// Takes an object back after a miss: on its home's CPU it goes to the slab, elsewhere to the stack
/// of objects that go home; a full stack gives a batch to the layers below first.
pub(crate) fn free(object: usize, home: NodeIndex, class: Class) {
    let mut back = Homecoming::default();
    let Some(seat) = seat() else {
        transfer::give(home, class, &[object], &mut back);
        return;
    };
    let local = home == seat.node;
    if !local && class.shape().size as usize > REMOTE_BYTES_EACH {
        transfer::give(home, class, &[object], &mut back);
        return;
    }
    let stack = if local { class.index() } else { REMOTE_STACK + home.get() };
    if rseq::push(seat.cpu, stack, &[object]) == 1 {
        return;
    }
    let mut batch = [0; BATCH_MAX];
    let wanted = if local { class.shape().batch as usize } else { BATCH_MAX };
    let got = rseq::pop(seat.cpu, stack, &mut batch[..wanted]);
    if local && got > 0 {
        transfer::give(seat.node, class, &batch[..got], &mut back);
    } else {
        transfer::give_mixed(&mut batch[..got], &mut back);
    }
    if rseq::push(seat.cpu, stack, &[object]) == 0 {
        transfer::give(home, class, &[object], &mut back);
    }
}
