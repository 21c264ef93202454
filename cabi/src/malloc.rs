//! malloc and its family.  errno: `ENOMEM` with each null, untouched otherwise.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::c_void;

use crate::{aside, errno, next};

/// Hands out `size` bytes, aligned to 16.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.malloc")]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    homenode_core::__alloc_hit!(malloc_missed)
}

#[cold]
pub(crate) extern "C" fn malloc_missed(size: usize) -> *mut c_void {
    errno::or_no_memory(allocate(size))
}

/// A request that missed, without errno.
pub(crate) fn allocate(size: usize) -> *mut u8 {
    if aside::is_aside() {
        return next::malloc(size).cast();
    }
    homenode_core::seam::slow_alloc(size)
}

/// [`malloc`], not the one that another library may put before it.
#[unsafe(naked)]
extern "C" fn malloc_here(size: usize) -> *mut c_void {
    homenode_core::__alloc_hit!(malloc_missed)
}

/// Takes a block back; null does nothing.
///
/// # Safety
/// C's contract of free.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.free")]
pub unsafe extern "C" fn free(block: *mut c_void) {
    homenode_core::__free_hit!(free_missed)
}

/// What a free that missed does: ours, null, or the next allocator's.
///
/// # Safety
/// As [`free`].
#[cold]
pub(crate) unsafe extern "C" fn free_missed(block: *mut c_void) {
    // SAFETY: the caller's contract.
    if !unsafe { homenode_core::seam::free_if_ours(block.cast()) } && !block.is_null() {
        // SAFETY: the caller's contract, and the block is not ours.
        unsafe { next::free(block) };
    }
}

/// What a sized delete that missed does.  C++ programs often tell a wrong size, so that is looked at under
/// `HOMENODE_CHECK=full` alone: the hit path brings it here then, and otherwise may not.
///
/// # Safety
/// As [`free`].
#[cold]
pub(crate) unsafe extern "C" fn delete_missed(block: *mut c_void, size: usize) {
    if homenode_core::seam::checks_fully() {
        // SAFETY: the caller's contract.
        unsafe { homenode_core::seam::check_size(block.cast(), size) };
    }
    // SAFETY: the caller's contract.
    unsafe { free_missed(block) };
}

/// [`free`] for a sized delete whose size is no small one, or not the object's.
///
/// # Safety
/// As [`free`].
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn delete_here(block: *mut c_void, size: usize) {
    homenode_core::__free_hit!(delete_missed)
}

/// [`free`], not the one that another library may put before it.
///
/// # Safety
/// As [`free`].
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn free_here(block: *mut c_void) {
    homenode_core::__free_hit!(free_missed)
}

/// An old name of free.
///
/// # Safety
/// As [`free`].
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    homenode_core::__free_hit!(free_missed)
}

/// Hands out `count` times `size` zeroed bytes.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.calloc")]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    homenode_core::__zeroed_hit!(calloc_missed)
}

#[cold]
pub(crate) extern "C" fn calloc_missed(count: usize, size: usize) -> *mut c_void {
    if aside::is_aside() {
        return next::calloc(count, size);
    }
    match count.checked_mul(size) {
        Some(bytes) => errno::or_no_memory(homenode_core::alloc_zeroed(bytes, 16)),
        None => errno::fail(libc::ENOMEM),
    }
}

/// Changes a block's length; `realloc(p, 0)` frees it and returns null, as glibc does.
///
/// # Safety
/// C's contract of realloc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { resize(block, size) }
}

/// [`realloc`], not the one that another library may put before it.
///
/// # Safety
/// As [`realloc`].
#[inline]
pub(crate) unsafe fn resize(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc_here(size);
    }
    // SAFETY: the caller's contract.
    if size > 0 && unsafe { homenode_core::seam::serves(block.cast(), size) } {
        return block;
    }
    // SAFETY: the caller's contract.
    unsafe { resize_or_move(block, size) }
}

/// A realloc that the class byte alone does not answer.
#[inline(never)]
unsafe fn resize_or_move(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    let Some(usable) = (unsafe { homenode_core::seam::usable_before_realloc(block.cast()) }) else {
        // SAFETY: the caller's contract, and the block is not ours.
        return unsafe { next::realloc(block, size) };
    };
    if size == 0 {
        // SAFETY: the caller's contract.
        unsafe { homenode_core::free(block.cast()) };
        return core::ptr::null_mut();
    }
    // SAFETY: the block is live, and `usable` long.
    errno::or_no_memory(unsafe { homenode_core::realloc(block.cast(), usable, size, 16) })
}

/// [`realloc`] of `count` times `size` bytes.
///
/// # Safety
/// As [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { resize_array(block, count, size) }
}

/// [`reallocarray`], not the one that another library may put before it.
///
/// # Safety
/// As [`realloc`].
#[inline]
pub(crate) unsafe fn resize_array(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's contract.
        Some(bytes) => unsafe { resize(block, bytes) },
        None => errno::fail(libc::ENOMEM),
    }
}

/// Bytes of a block that may be used; 0 for null.
///
/// # Safety
/// `block` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's contract.
    match unsafe { homenode_core::usable_size(block.cast()) } {
        Some(usable) => usable,
        // SAFETY: the caller's contract, and the block is not ours.
        None => unsafe { next::usable_size(block) },
    }
}
