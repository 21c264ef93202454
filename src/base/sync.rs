//! The one place that knows loom: atomics are core's, or the model checker's.
//!
//! Each ordering that a module's table lists is written `order!(TAG, Ordering)`, each fence
//! `barrier!(TAG, Ordering)`: the tag names the row.  Under loom a test weakens one of them and
//! shows that the model notices (see `model`).

#[cfg(not(loom))]
pub(crate) use core::hint::spin_loop;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
};
#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence},
};

pub(crate) use core::sync::atomic::Ordering;

/// The ordering of the site with this tag.
#[cfg(not(loom))]
macro_rules! order {
    ($tag:ident, $order:ident) => {
        $crate::base::sync::Ordering::$order
    };
}

/// The fence with this tag.
#[cfg(not(loom))]
macro_rules! barrier {
    ($tag:ident, $order:ident) => {
        $crate::base::sync::fence($crate::base::sync::Ordering::$order)
    };
}

#[cfg(loom)]
macro_rules! order {
    ($tag:ident, $order:ident) => {
        $crate::base::sync::model::order(stringify!($tag), $crate::base::sync::Ordering::$order)
    };
}

#[cfg(loom)]
macro_rules! barrier {
    ($tag:ident, $order:ident) => {
        if !$crate::base::sync::model::is_weakened(stringify!($tag)) {
            $crate::base::sync::fence($crate::base::sync::Ordering::$order)
        }
    };
}

pub(crate) use {barrier, order};

/// What models of protocols are made of: plain data that loom watches, and sites weakened one at a time.
#[cfg(loom)]
pub(crate) mod model {
    #![allow(unsafe_code, reason = "plain data, raced for on purpose")]

    use super::Ordering;
    use core::cell::Cell;
    use loom::cell::UnsafeCell;
    use std::panic::catch_unwind;

    /// A word that is no atomic: two threads that meet at it fail the model.
    #[derive(Default, Debug)]
    pub(crate) struct Plain(UnsafeCell<usize>);

    // SAFETY: loom stops the model at the first access that races with another.
    unsafe impl Sync for Plain {}

    impl Plain {
        /// The value.
        pub(crate) fn get(&self) -> usize {
            // SAFETY: loom has checked that no write is concurrent.
            self.0.with(|word| unsafe { *word })
        }

        /// Sets the value, and returns the old one.
        pub(crate) fn set(&self, value: usize) -> usize {
            // SAFETY: loom has checked that no other access is concurrent.
            self.0.with_mut(|word| unsafe { core::mem::replace(&mut *word, value) })
        }

        /// Counts one up.
        pub(crate) fn count(&self) {
            // SAFETY: loom has checked that no other access is concurrent.
            self.0.with_mut(|word| unsafe { *word += 1 });
        }
    }

    /// A word that every thread of a model moves between its calls, so that loom tries all their
    /// orders: of the loads of a word it remembers only the last, and misses some orders by itself.
    #[derive(Default, Debug)]
    pub(crate) struct Steps(super::AtomicU32);

    impl Steps {
        /// Here another thread may go first.  Orders no memory.
        pub(crate) fn pass(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    std::thread_local! {
        // All threads of a model run on one thread of the system.
        static WEAKENED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// The ordering of a site: the declared one, or none at all while the site is weakened.
    pub(crate) fn order(tag: &str, declared: Ordering) -> Ordering {
        if is_weakened(tag) { Ordering::Relaxed } else { declared }
    }

    /// True while the ordering, the fence or the step of a protocol with this tag is left out.
    pub(crate) fn is_weakened(tag: &str) -> bool {
        WEAKENED.get() == Some(tag)
    }

    /// Runs a model through its interleavings with at most three preemptions.
    pub(crate) fn explore(model: fn()) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// Runs a model with the site `tag` weakened; true when some interleaving fails.
    pub(crate) fn is_caught(tag: &'static str, model: fn()) -> bool {
        WEAKENED.set(Some(tag));
        let caught = catch_unwind(|| explore(model)).is_err();
        WEAKENED.set(None);
        caught
    }
}
