//! transfer: batches between the CPUs' slabs and the spans, and objects on their way home.
//!
//! CPUs that share a last-level cache are a *lane*.  Per node, lane and class there is a rack of whole
//! batches ([`rack`]), made when the first batch comes: what one CPU has too much of another one takes
//! from there, without a lock.  A lane whose rack is empty looks at the node's other lanes; only then,
//! and when a rack is full, the spans are asked, under their pool's lock.
//!
//! Drains go past the racks: they are there to bring objects home, and spans name double frees.
#![allow(unsafe_code, reason = "racks stand in the slice's metadata")]

mod rack;
#[cfg(test)]
mod tests;

use crate::base::classes::{CLASSES, Class};
use crate::base::config::{
    BATCH_MAX, LANES_MAX, NODE_RECORD_BYTES, RACK_BYTES, RACK_TRAYS_MAX, TRANSFER_RECORD_BYTES,
};
use crate::base::ids::{LaneId, NodeIndex};
use crate::base::sync::{AtomicUsize, Ordering};
use crate::region::{self, Exhausted, Slice};
use crate::slab::{self, Homecoming};
use crate::sys::fatal::{Fault, misuse};
use crate::sys::mem;
use rack::Rack;

/// Takes a batch of a class from node `node` for a CPU of lane `lane`; how many objects, at least one.
pub(crate) fn take(
    node: NodeIndex,
    lane: LaneId,
    class: Class,
    batch: &mut [usize],
) -> Result<usize, Exhausted> {
    let slice = region::slice(node);
    let taken = if slice.is_open() { take_racked(slice, lane, class, batch) } else { 0 };
    if taken > 0 { Ok(taken) } else { slab::take(node, class, batch) }
}

// Apart, so that the spans are not asked above its frame.
#[inline(never)]
fn take_racked(slice: &Slice, lane: LaneId, class: Class, batch: &mut [usize]) -> usize {
    (0..LANES_MAX)
        .filter_map(|step| Racks::of(slice, lane.after(step))?.get(class))
        .map(|rack| rack.fill(batch))
        .find(|&taken| taken > 0)
        .unwrap_or(0)
}

/// Gives objects of one class to their home, `home`, batch by batch.
pub(crate) fn give(
    home: NodeIndex,
    lane: LaneId,
    class: Class,
    objects: &[usize],
    back: &mut Homecoming,
) {
    let slice = region::slice(home);
    let rack = Racks::ensure(slice, lane).and_then(|racks| racks.ensure_rack(slice, class));
    for batch in objects.chunks(class.shape().batch as usize) {
        if !rack.is_some_and(|rack| rack.put(batch)) {
            slab::give(home, class, batch, back);
        }
    }
}

/// Sorts at most [`BATCH_MAX`] objects of any class and home, and calls `deliver` with those of one class and
/// home.
pub(crate) fn sort(objects: &mut [usize], mut deliver: impl FnMut(NodeIndex, Class, &[usize])) {
    let Some((&first, others)) = objects.split_first() else { return };
    let first = Destination::of(first);
    if others.iter().all(|&object| Destination::of(object) == first) {
        // Most are: what one thread hands to another is often of one size.
        return first.receive(objects, &mut deliver);
    }
    let mut destinations = [Destination::default(); BATCH_MAX];
    for (destination, &object) in destinations.iter_mut().zip(&*objects) {
        *destination = Destination::of(object);
    }
    let destinations = &mut destinations[..objects.len()];
    insertion_sort(objects, destinations);
    let mut rest = &*objects;
    for same in destinations.chunk_by(PartialEq::eq) {
        let (batch, others) = rest.split_at(same.len());
        same[0].receive(batch, &mut deliver);
        rest = others;
    }
}

/// Sorts objects by their destinations, on little stack.
fn insertion_sort(objects: &mut [usize], destinations: &mut [Destination]) {
    for end in 1..objects.len() {
        let mut at = end;
        while at > 0 && destinations[at - 1] > destinations[at] {
            destinations.swap(at - 1, at);
            objects.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Where an object goes: its class in the low byte, its home above, so that one comparison orders two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Destination(u16);

impl Destination {
    fn of(object: usize) -> Self {
        let (home, byte) = region::home_and_class(object);
        if byte == 0 {
            // Its span went back to the page heap, so all its objects were free: this one was freed twice.
            misuse(Fault::DoubleFree, object);
        }
        Self(u16::from_be_bytes([home.byte(), byte]))
    }

    /// Calls `deliver` with objects that go here.
    fn receive(self, objects: &[usize], deliver: &mut impl FnMut(NodeIndex, Class, &[usize])) {
        let [home, byte] = self.0.to_be_bytes();
        if let Some(class) = Class::from_byte(byte) {
            deliver(NodeIndex::new(home.into()), class, objects);
        }
    }
}

/// Sends all that a node's racks hold to its spans.
pub(crate) fn flush(node: NodeIndex, back: &mut Homecoming) {
    let slice = region::slice(node);
    for racks in all(slice) {
        for class in Class::all() {
            let Some(rack) = racks.get(class) else { continue };
            let mut batch = [0; BATCH_MAX];
            loop {
                let taken = rack.take(&mut batch);
                if taken == 0 {
                    break;
                }
                slab::give(node, class, &batch[..taken], back);
            }
        }
    }
}

/// Objects of a class in the racks of an open slice.
pub(crate) fn census(slice: &Slice, class: Class) -> u64 {
    let racks = all(slice).filter_map(|racks| racks.get(class));
    racks.map(|rack| rack.states.objects() as u64).sum()
}

/// The racks of one lane on one node: an address each, 0 while there is none.
#[repr(C)]
#[derive(Debug)]
struct Racks {
    by_class: [AtomicUsize; CLASSES],
}

/// The racks that a node has.
fn all(slice: &Slice) -> impl Iterator<Item = &'static Racks> {
    (0..LANES_MAX).filter_map(|lane| Racks::of(slice, LaneId::new(lane)))
}

impl Racks {
    /// The word that says where a lane's racks are.
    fn word(slice: &Slice, lane: LaneId) -> &'static AtomicUsize {
        let words = slice.node_record() + NODE_RECORD_BYTES - TRANSFER_RECORD_BYTES;
        // SAFETY: the end of an open slice's node record is this layer's, zeroed at first.
        unsafe { mem::record(words + lane.get() * size_of::<AtomicUsize>()) }
    }

    fn of(slice: &Slice, lane: LaneId) -> Option<&'static Self> {
        published(Self::word(slice, lane))
    }

    fn ensure(slice: &Slice, lane: LaneId) -> Option<&'static Self> {
        let word = Self::word(slice, lane);
        published(word).or_else(|| {
            slice.room_once(word, size_of::<Self>()).ok()?;
            published(word)
        })
    }

    fn get(&'static self, class: Class) -> Option<RackOf> {
        let states = published(&self.by_class[class.index()])?;
        Some(RackOf { states, class })
    }

    fn ensure_rack(&'static self, slice: &Slice, class: Class) -> Option<RackOf> {
        self.get(class).or_else(|| {
            let words = trays(class) * class.shape().batch as usize;
            let bytes = size_of::<Rack>() + words * size_of::<usize>();
            slice.room_once(&self.by_class[class.index()], bytes).ok()?;
            self.get(class)
        })
    }
}

/// The record that a word names, if it names one.
fn published<T>(word: &AtomicUsize) -> Option<&'static T> {
    // Acquire: see `Slice::room_once`.
    let address = word.load(Ordering::Acquire);
    // SAFETY: the words of this layer name metadata rooms of the right size, zeroed, that stay.
    (address != 0).then(|| unsafe { mem::record(address) })
}

/// Trays of a class's rack.
fn trays(class: Class) -> usize {
    let batch = class.shape().batch as usize * class.shape().size as usize;
    (RACK_BYTES / batch).clamp(1, RACK_TRAYS_MAX)
}

/// A class's rack.
#[derive(Clone, Copy, Debug)]
struct RackOf {
    states: &'static Rack,
    class: Class,
}

impl RackOf {
    fn put(self, batch: &[usize]) -> bool {
        let count = u8::try_from(batch.len()).unwrap_or(0);
        self.states.put(trays(self.class), count, |tray| {
            for (index, &object) in batch.iter().enumerate() {
                self.word(tray, index).store(object, Ordering::Relaxed);
            }
        })
    }

    /// Takes batches that fit until there is no room for another; how many objects.  What comes home from
    /// elsewhere comes in small batches, of several classes at once.
    fn fill(self, batch: &mut [usize]) -> usize {
        let mut taken = 0;
        while let Some(rest) = batch.get_mut(taken..).filter(|rest| !rest.is_empty()) {
            let more = self.take(rest);
            if more == 0 {
                break;
            }
            taken += more;
        }
        taken
    }

    /// Takes a batch that fits; how many objects.
    fn take(self, batch: &mut [usize]) -> usize {
        let mut taken = 0;
        self.states.take(trays(self.class), batch.len(), |tray, count| {
            taken = count;
            for (index, object) in batch.iter_mut().enumerate().take(count) {
                *object = self.word(tray, index).load(Ordering::Relaxed);
            }
        });
        taken
    }

    fn word(self, tray: usize, index: usize) -> &'static AtomicUsize {
        let words = core::ptr::from_ref(self.states).expose_provenance() + size_of::<Rack>();
        let word = tray * self.class.shape().batch as usize + index;
        // SAFETY: a rack's room has so many words for each of its trays behind the states.
        unsafe { mem::record(words + word * size_of::<usize>()) }
    }
}

const _: () = assert!(LANES_MAX * size_of::<AtomicUsize>() <= TRANSFER_RECORD_BYTES);
