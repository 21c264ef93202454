//! Steps aside in a program with a sanitizer's runtime: that must see each request, so its malloc, the next
//! one behind ours, serves all of them.  Nothing of homenode starts, so every call misses and comes here.
//!
//! An address sanitizer's program does not even start with a library before its runtime, unless
//! `ASAN_OPTIONS=verify_asan_link_order=0` says so.
#![allow(unsafe_code, reason = "symbols of other libraries")]

use core::sync::atomic::{AtomicU32, Ordering};

use crate::next;

const UNKNOWN: u32 = 0;
const SERVES: u32 = 1;
const ASIDE: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// True when the next allocator serves.
pub(crate) fn is_aside() -> bool {
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => decide(),
        state => state == ASIDE,
    }
}

/// Decided at the first request, which may come before any constructor.
#[cold]
fn decide() -> bool {
    // Looking for the next allocator may allocate: then we serve, and free by address.
    STATE.store(SERVES, Ordering::Relaxed);
    let aside = has_sanitizer() && next::can_allocate();
    if aside {
        STATE.store(ASIDE, Ordering::Relaxed);
        homenode_core::seam::say_aside();
    }
    aside
}

fn has_sanitizer() -> bool {
    homenode_core::__weak_symbol!("__asan_init") != 0
        || homenode_core::__weak_symbol!("__hwasan_init") != 0
        || homenode_core::__weak_symbol!("__msan_init") != 0
        || homenode_core::__weak_symbol!("__tsan_init") != 0
}
