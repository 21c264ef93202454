//! transfer: batches between the CPUs' slabs and the spans, and objects on their way home.
//!
//! A batch goes straight to its pool.  Rings of whole batches, per node, last-level cache and class,
//! are to come between: `take` and `give` are their interface.

#[cfg(test)]
mod tests;

use crate::base::classes::Class;
use crate::base::config::BATCH_MAX;
use crate::base::ids::NodeIndex;
use crate::base::sync::Ordering;
use crate::region::{self, Exhausted};
use crate::slab::{self, Homecoming};
use crate::sys::fatal::{Fault, misuse};

/// Takes a batch of a class from node `node`; how many objects, at least one.
pub(crate) fn take(node: NodeIndex, class: Class, batch: &mut [usize]) -> Result<usize, Exhausted> {
    slab::take(node, class, batch)
}

/// Gives a batch of one class to its home.
pub(crate) fn give(home: NodeIndex, class: Class, batch: &[usize], back: &mut Homecoming) {
    slab::give(home, class, batch, back);
}

/// Gives objects of any class and home to their homes, one batch a class and home.
pub(crate) fn give_mixed(objects: &mut [usize], back: &mut Homecoming) {
    for objects in objects.chunks_mut(BATCH_MAX) {
        objects.sort_unstable_by_key(|&object| destination(object));
        for batch in objects.chunk_by(|&one, &other| destination(one) == destination(other)) {
            let (home, class) = destination(batch[0]);
            give(home, class, batch, back);
        }
    }
}

fn destination(object: usize) -> (NodeIndex, Class) {
    let place = region::locate(object);
    let class = place.and_then(|place| {
        Class::from_byte(place.slice.class_byte(place.run()).load(Ordering::Relaxed))
    });
    match (place, class) {
        (Some(place), Some(class)) => (place.node, class),
        // Its span went back to the page heap, so all its objects were free: this one was freed twice.
        _ => misuse(Fault::DoubleFree, object),
    }
}
