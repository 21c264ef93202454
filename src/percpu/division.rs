//! How a CPU's slab is divided among classes, and the signs that say it should be divided otherwise.
//!
//! A slab starts *packed*: a few objects of each small class, none of the large ones.  Two things make
//! the CPU's slow path divide it anew:
//!
//! - A class misses again while it holds less than two batches: it gets four times as much, up to
//!   those.  The first miss, which brings five objects, is all that many a class has in a short program.
//!   Not so for large objects ([`SLAB_EAGER_BYTES`]): most of them are wanted once.
//! - An object is wanted of a class that overflowed since it last grew: what went down then would have
//!   served now, so the class gets twice as much.
//!
//! Room comes from what is not divided yet, then from classes that did not miss since the *hand* last
//! passed them: they lose half.  The bytes that all CPUs' slabs may hold are bounded: a part of each
//! CPU's own, the rest shared among the CPUs by demand.
//!
//! Signs are written by threads on the CPU without a lock, so one may be lost now and then, and a class
//! grows a little later; everything else is under the CPU's flip lock.

use crate::base::classes::Class;
use crate::base::config::{
    REMOTE_OBJECTS, SLAB_EAGER_BYTES, SLAB_FREE_BYTES, SLAB_OBJECTS_MAX, SLAB_SHARED_BYTES,
};
use crate::base::sync::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use crate::sys::arch::{REMOTE_STACK, STACKS};
use crate::topo;

/// The class missed since the hand passed.
const MISSED: u8 = 1;
/// The class overflowed since it last grew.
const OVERFLOWED: u8 = 2;

/// Misses that pass after a class could not grow, before another one tries.
const REST: u32 = 64;

/// Bytes beyond [`SLAB_FREE_BYTES`] that CPUs' slabs are divided for.
static SHARED: AtomicUsize = AtomicUsize::new(0);

/// How one CPU's slab is divided.  Zero bytes: not yet.
#[derive(Debug)]
pub(super) struct Division {
    capacities: [AtomicU16; STACKS],
    signs: [AtomicU8; REMOTE_STACK],
    /// Words of all stacks, each with the null word before it.
    words: AtomicU32,
    /// Bytes of the objects that all class stacks can hold.
    bytes: AtomicUsize,
    /// Class that the hand points at.
    hand: AtomicU32,
    /// Misses that pass before a class may try to grow.
    rest: AtomicU32,
}

/// Objects of a class that two batches are: what every class that misses may have.
fn eager(class: Class) -> usize {
    let shape = class.shape();
    if shape.size as usize > SLAB_EAGER_BYTES { 0 } else { 2 * shape.batch as usize }
}

fn packed(class: Class) -> usize {
    match class.shape().size as usize {
        0..=1024 => 4,
        1025..=SLAB_EAGER_BYTES => 2,
        _ => 0,
    }
}

/// What of a CPU's bytes counts as shared.
fn shared_part(bytes: usize) -> usize {
    bytes.saturating_sub(SLAB_FREE_BYTES)
}

impl Division {
    /// Objects that a stack holds.
    pub(super) fn capacity(&self, stack: usize) -> usize {
        self.capacities[stack].load(Ordering::Relaxed).into()
    }

    /// Packs a slab of `limit` words, unless the CPU's slab is divided already.
    pub(super) fn begin(&self, limit: usize) {
        if self.words.load(Ordering::Relaxed) != 0 {
            return;
        }
        let mut words = STACKS;
        for class in Class::all() {
            words += self.set(class.index(), packed(class));
            self.add_bytes(packed(class) * class.shape().size as usize);
        }
        let nodes = topo::nodes();
        if nodes > 1 {
            let each = REMOTE_OBJECTS.min((limit - words) / 2 / nodes);
            words += (0..nodes).map(|node| self.set(REMOTE_STACK + node, each)).sum::<usize>();
        }
        debug_assert!(words <= limit, "a packed slab fits the least area");
        self.set_words(words);
    }

    /// After a fork that left the flip lock behind, maybe amid a change of these words: the next slab is
    /// packed.
    #[cold]
    #[inline(never)]
    pub(super) fn forget(&self) {
        self.words.store(0, Ordering::Relaxed);
        self.drop_bytes(self.bytes.load(Ordering::Relaxed));
    }

    fn set(&self, stack: usize, capacity: usize) -> usize {
        self.capacities[stack].store(u16::try_from(capacity).unwrap_or(0), Ordering::Relaxed);
        capacity
    }

    fn set_words(&self, words: usize) {
        self.words.store(u32::try_from(words).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// An object of the class was wanted and there was none.  True: the class should grow.
    pub(super) fn note_refill(&self, class: Class) -> bool {
        let sign = &self.signs[class.index()];
        let before = sign.load(Ordering::Relaxed);
        sign.store(MISSED, Ordering::Relaxed);
        let now = self.capacity(class.index());
        let wants = (before != 0 && now < eager(class))
            || (before & OVERFLOWED != 0 && now < SLAB_OBJECTS_MAX);
        wants && self.may_try()
    }

    /// An object of the class came and there was no room.  True: the class should grow.
    pub(super) fn note_overflow(&self, class: Class) -> bool {
        let sign = &self.signs[class.index()];
        let before = sign.load(Ordering::Relaxed);
        sign.store(MISSED | OVERFLOWED, Ordering::Relaxed);
        before != 0 && self.capacity(class.index()) < eager(class) && self.may_try()
    }

    fn may_try(&self) -> bool {
        let rest = self.rest.load(Ordering::Relaxed);
        if rest > 0 {
            self.rest.store(rest - 1, Ordering::Relaxed);
        }
        rest == 0
    }

    /// Gives a class more room in a slab of `limit` words.  False: there is none to be had.
    pub(super) fn grow(&self, class: Class, limit: usize) -> bool {
        let now = self.capacity(class.index());
        let wanted = if now < eager(class) {
            (4 * now).clamp(4, eager(class))
        } else {
            (2 * now).clamp(1, SLAB_OBJECTS_MAX)
        };
        let more = wanted.saturating_sub(now);
        let grows = more > 0 && self.make_room(class, more, limit);
        if grows {
            self.resize(class, now + more);
        } else {
            self.rest.store(REST, Ordering::Relaxed);
        }
        grows
    }

    /// Takes from quiet classes, in one round of the hand at most, until `class` can have `more`.
    fn make_room(&self, class: Class, more: usize, limit: usize) -> bool {
        let fits = || {
            self.words.load(Ordering::Relaxed) as usize + more <= limit
                && self.may_hold(more * class.shape().size as usize)
        };
        for _ in 0..REMOTE_STACK {
            if fits() {
                return true;
            }
            let hand = self.hand.load(Ordering::Relaxed).wrapping_add(1);
            self.hand.store(hand, Ordering::Relaxed);
            let quiet = u8::try_from(hand as usize % REMOTE_STACK).ok().and_then(Class::from_byte);
            if let Some(quiet) = quiet.filter(|&quiet| quiet != class) {
                self.pass(quiet);
            }
        }
        fits()
    }

    /// The hand passes a class.
    fn pass(&self, class: Class) {
        let sign = &self.signs[class.index()];
        let before = sign.load(Ordering::Relaxed);
        sign.store(before & !MISSED, Ordering::Relaxed);
        let now = self.capacity(class.index());
        if before & MISSED == 0 && now > packed(class) {
            self.resize(class, (now / 2).max(packed(class)));
        }
    }

    fn resize(&self, class: Class, capacity: usize) {
        let now = self.capacity(class.index());
        self.set_words(self.words.load(Ordering::Relaxed) as usize + capacity - now);
        self.set(class.index(), capacity);
        let size = class.shape().size as usize;
        if capacity > now {
            self.add_bytes((capacity - now) * size);
        } else {
            self.drop_bytes((now - capacity) * size);
        }
    }

    /// Bytes of objects that the class stacks can hold.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn may_hold(&self, more: usize) -> bool {
        let now = self.bytes.load(Ordering::Relaxed);
        let shared = shared_part(now + more) - shared_part(now);
        SHARED.load(Ordering::Relaxed) + shared <= SLAB_SHARED_BYTES
    }

    fn add_bytes(&self, more: usize) {
        let now = self.bytes.load(Ordering::Relaxed);
        // First, and last in `drop_bytes`: in a child forked in between, the sum is not below its parts.
        SHARED.fetch_add(shared_part(now + more) - shared_part(now), Ordering::Relaxed);
        self.bytes.store(now + more, Ordering::Relaxed);
    }

    fn drop_bytes(&self, less: usize) {
        let now = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(now - less, Ordering::Relaxed);
        SHARED.fetch_sub(shared_part(now) - shared_part(now - less), Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Default for Division {
    fn default() -> Self {
        Self {
            capacities: [const { AtomicU16::new(0) }; STACKS],
            signs: [const { AtomicU8::new(0) }; REMOTE_STACK],
            words: AtomicU32::new(0),
            bytes: AtomicUsize::new(0),
            hand: AtomicU32::new(0),
            rest: AtomicU32::new(0),
        }
    }
}

#[cfg(test)]
impl Drop for Division {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        SHARED.fetch_sub(shared_part(bytes), Ordering::Relaxed);
    }
}
