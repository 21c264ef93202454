//! The hit paths as functions of the crate: what `GlobalAlloc` and the rest of this layer call.
#![allow(unsafe_code, reason = "naked functions around the arch layer's sections")]

use super::{slow_alloc, slow_class, slow_free};

/// Hands out `size` bytes at 16-byte alignment; null when there is no memory.
#[unsafe(naked)]
pub(super) extern "C" fn alloc(size: usize) -> *mut u8 {
    crate::__alloc_hit!(slow_alloc)
}

/// Hands out an object of the class with this index; null when there is no memory.
#[unsafe(naked)]
pub(super) extern "C" fn alloc_class(class: usize) -> *mut u8 {
    crate::__alloc_class_hit!(slow_class)
}

/// Takes an object back.
///
/// # Safety
/// `object` is null or was handed out and is not used any more.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn free(object: *mut u8) {
    crate::__free_hit!(slow_free)
}

/// Takes an object back that is expected to be of the class with this index.
///
/// # Safety
/// As [`free`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn free_class(object: *mut u8, class: usize) {
    crate::__free_class_hit!(free, slow_free)
}

/// [`alloc_class`], called directly: the compiler would go through the table of global addresses, and a string
/// that grows would take 3 % longer.
#[inline]
pub(super) fn alloc_class_directly(class: usize) -> *mut u8 {
    // SAFETY: the function takes any class, and callers have one.
    unsafe { crate::__call!(alloc_class_called, class) }
}

/// [`free_class`], called directly.
///
/// # Safety
/// As [`free`].
#[inline]
pub(super) unsafe fn free_class_directly(object: *mut u8, class: usize) {
    // SAFETY: the caller's promise.
    let _: usize = unsafe { crate::__call!(free_class_called, object, class) };
}

/// [`alloc_class`] on a stack of any alignment.
#[unsafe(naked)]
extern "C" fn alloc_class_called(class: usize) -> *mut u8 {
    crate::__alloc_class_hit!(class_missed)
}

/// [`free_class`] on a stack of any alignment.
#[unsafe(naked)]
unsafe extern "C" fn free_class_called(object: *mut u8, class: usize) {
    crate::__free_class_hit!(free_missed, free_missed)
}

#[unsafe(naked)]
extern "C" fn class_missed(class: usize) -> *mut u8 {
    crate::__on_aligned_stack!(slow_class)
}

#[unsafe(naked)]
unsafe extern "C" fn free_missed(object: *mut u8) {
    crate::__on_aligned_stack!(slow_free)
}
