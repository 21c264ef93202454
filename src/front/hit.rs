//! The hit paths as functions of the crate: what `GlobalAlloc` and the rest of this layer call.
#![allow(unsafe_code, reason = "naked functions around the arch layer's sections")]

use super::{slow_alloc, slow_eight, slow_free};

/// Hands out `size` bytes at 16-byte alignment; null when there is no memory.
#[unsafe(naked)]
pub(super) extern "C" fn alloc(size: usize) -> *mut u8 {
    crate::__alloc_hit!(slow_alloc)
}

/// Hands out an 8-byte object; null when there is no memory.
#[unsafe(naked)]
pub(super) extern "C" fn alloc_eight() -> *mut u8 {
    crate::__class_hit!(1, slow_eight)
}

/// Takes an object back.
///
/// # Safety
/// `object` is null or was handed out and is not used any more.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn free(object: *mut u8) {
    crate::__free_hit!(slow_free)
}
