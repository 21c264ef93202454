//! Objects that a signal handler freed while its thread was in a slow path: the next slow path of any
//! thread frees them for good.

use crate::base::stack::Stack;
use crate::sys::mem;

static STACK: Stack = Stack::new();

/// Puts a freed object aside; async-signal-safe.
pub(super) fn push(object: usize) {
    STACK.push(object, mem::link);
}

/// Takes all objects that were put aside, and calls `free` with each.
pub(super) fn take_all(free: impl FnMut(usize)) {
    STACK.take_all(mem::link, free);
}
