//! Objects that a signal handler freed while its thread was in a slow path: a stack without a lock.
//! The next slow path of any thread frees them for good.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | D1 `first` compare-exchange | Release | D2 | publishes the link in the object |
//! | D2 `first` swap with 0 | Acquire | D1 | the whole stack is taken at once, so no link is ever stale |
#![allow(unsafe_code, reason = "links stand in dead objects")]

use crate::base::sync::{AtomicUsize, Ordering};
use crate::sys::mem;

static FIRST: AtomicUsize = AtomicUsize::new(0);

/// The link in a dead object's first word.
fn link(object: usize) -> &'static AtomicUsize {
    // SAFETY: the object was just freed, is at least 8 bytes long and aligned to 8, and stays
    // mapped until it is taken out here.
    unsafe { mem::record(object) }
}

/// Puts a freed object aside; async-signal-safe.
pub(super) fn push(object: usize) {
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        link(object).store(first, Ordering::Relaxed);
        // D1
        match FIRST.compare_exchange(first, object, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Takes all objects that were put aside, and calls `free` with each.
pub(super) fn take_all(mut free: impl FnMut(usize)) {
    // The sticky answer is "none": read before it is written.
    if FIRST.load(Ordering::Relaxed) == 0 {
        return;
    }
    // D2
    let mut object = FIRST.swap(0, Ordering::Acquire);
    while object != 0 {
        let next = link(object).load(Ordering::Relaxed);
        free(object);
        object = next;
    }
}
