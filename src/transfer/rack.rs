//! A rack: trays for batches of one class, each with a state byte.
//!
//! ```text
//! byte 0    states[64]   8 bits each: 0 empty, 1 to 32 objects of a batch, 255 in somebody's hand
//! byte 64   trays        as many words each as a batch of the class has objects
//! ```
//! Who puts a batch down takes the first empty tray by one compare-exchange, writes the objects, and
//! shows them by a store; who takes one up does the same the other way round.  Nobody ever waits for
//! another: a tray in the hand of a thread that sleeps, or that a fork left behind, is one tray less.
//! The first fitting tray is taken, so that a rack that is seldom full touches little memory, and where
//! threads put down and take up in turns, a batch comes back while it is warm.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | T1 state compare-exchange of an empty tray | Acquire | T4 | the last reader has read before the words are written anew |
//! | T2 state store of a count | Release | T3 | the objects, and what their users wrote, come before they are seen |
//! | T3 state compare-exchange of a count | Acquire | T2 | |
//! | T4 state store of empty | Release | T1 | |

use crate::base::config::RACK_TRAYS_MAX;
use crate::base::sync::{AtomicU8, Ordering, order};

const EMPTY: u8 = 0;
const IN_HAND: u8 = u8::MAX;

/// The states of a rack's trays.  Zero bytes are empty ones.
#[repr(C, align(64))]
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(super) struct Rack {
    states: [AtomicU8; RACK_TRAYS_MAX],
}

impl Rack {
    /// Puts `count` objects, 1 to 254, down on one of the first `trays` trays: `write` gets its number.
    /// False: all are taken.
    pub(super) fn put(&self, trays: usize, count: u8, write: impl FnOnce(usize)) -> bool {
        for (tray, state) in self.states.iter().enumerate().take(trays) {
            if state.load(Ordering::Relaxed) == EMPTY
                && state
                    .compare_exchange(EMPTY, IN_HAND, order!(T1, Acquire), Ordering::Relaxed)
                    .is_ok()
            {
                write(tray);
                state.store(count, order!(T2, Release));
                return true;
            }
        }
        false
    }

    /// Takes a batch of at most `most` objects up: `read` gets its tray's number and its count.
    pub(super) fn take(&self, trays: usize, most: usize, read: impl FnOnce(usize, usize)) -> bool {
        for (tray, state) in self.states.iter().enumerate().take(trays) {
            let count = state.load(Ordering::Relaxed);
            if count != EMPTY
                && count != IN_HAND
                && usize::from(count) <= most
                && state
                    .compare_exchange(count, IN_HAND, order!(T3, Acquire), Ordering::Relaxed)
                    .is_ok()
            {
                read(tray, count.into());
                state.store(EMPTY, order!(T4, Release));
                return true;
            }
        }
        false
    }

    /// Objects on all trays, at some moment.
    pub(super) fn objects(&self) -> usize {
        let counts = self.states.iter().map(|state| state.load(Ordering::Relaxed));
        counts.filter(|&count| count != IN_HAND).map(usize::from).sum()
    }
}

#[cfg(not(loom))]
const _: () = assert!(crate::base::config::BATCH_MAX < IN_HAND as usize);
#[cfg(not(loom))]
const _: () = assert!(size_of::<Rack>() == 64);

#[cfg(all(loom, test))]
mod loom_models {
    use super::Rack;
    use crate::base::config::RACK_TRAYS_MAX;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use loom::sync::Arc;
    use loom::thread;

    /// A rack whose trays hold one object each, and objects that their users write to.
    #[derive(Default)]
    struct Store {
        steps: Steps,
        rack: Rack,
        trays: [Plain; RACK_TRAYS_MAX],
        objects: [Plain; 4],
    }

    impl Store {
        fn put(&self, object: usize) -> bool {
            self.objects[object].count();
            self.steps.pass();
            self.rack.put(RACK_TRAYS_MAX, 1, |tray| {
                self.trays[tray].set(object);
            })
        }

        /// Takes an object up and uses it; its number.
        fn take(&self) -> Option<usize> {
            let mut object = None;
            self.steps.pass();
            self.rack.take(RACK_TRAYS_MAX, 1, |tray, _| object = Some(self.trays[tray].get()));
            object.inspect(|&object| self.objects[object].count())
        }
    }

    /// One thread puts down what another takes up, on few trays.
    fn batches_change_hands() {
        let store = Arc::new(Store::default());
        let other = store.clone();
        let putter = thread::spawn(move || (0..3).filter(|&object| other.put(object)).count());
        let taken = usize::from(store.take().is_some()) + usize::from(store.take().is_some());
        let put = putter.join().expect("the other thread ends");
        assert_eq!(put, taken + store.rack.objects());
    }

    /// Two threads take up what lies there, and one of them puts down another.
    fn a_batch_has_one_taker() {
        let store = Arc::new(Store::default());
        assert!(store.put(0));
        let other = store.clone();
        let taker = thread::spawn(move || other.take());
        let mine = store.take();
        store.put(1);
        let theirs = taker.join().expect("the other thread ends");
        assert!(mine.is_none() || mine != theirs, "handed out twice");
    }

    #[test]
    fn a_batch_is_taken_once_with_what_it_holds() {
        explore(batches_change_hands);
        explore(a_batch_has_one_taker);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("T1", batches_change_hands));
        assert!(is_caught("T2", batches_change_hands));
        assert!(is_caught("T3", batches_change_hands));
        assert!(is_caught("T4", batches_change_hands));
    }
}
