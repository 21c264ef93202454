//! Aligned blocks.  What an alignment must be differs by entry:
//!
//! | entry | alignment that is refused | how |
//! |---|---|---|
//! | `posix_memalign` | no power of two, or no multiple of a pointer's size | returns `EINVAL`, errno untouched |
//! | `aligned_alloc` | 0, or no power of two | null, errno `EINVAL` |
//! | `memalign` | over 2^63; others are rounded up to a power of two | null, errno `EINVAL` |
//! | `valloc`, `pvalloc` | none: it is the base page | |
//!
//! Here one rule of glibc 2.36 is not kept: its `aligned_alloc` is `memalign`, and rounds up.  From 2.38 on it
//! refuses, as C17 asks and as programs built against any glibc have to expect.  Neither looks at whether the
//! size is a multiple of the alignment (C17, DR 460).
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{c_int, c_void};

use crate::malloc::free_here;
use crate::{aside, errno, next};

const BASE_ALIGN: usize = 16;

/// A block at a multiple of `align`, a power of two; null when there is no memory.
pub(crate) fn aligned(size: usize, align: usize) -> *mut u8 {
    if aside::is_aside() {
        return next::aligned(size, align.max(BASE_ALIGN)).cast();
    }
    homenode_core::alloc_aligned(size, align.max(BASE_ALIGN))
}

fn page() -> usize {
    // SAFETY: sysconf of the page size reads a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Hands out `size` bytes at a multiple of `align`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.aligned_alloc")]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    homenode_core::__aligned_alloc_hit!(aligned_alloc_missed)
}

#[cold]
extern "C" fn aligned_alloc_missed(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return errno::fail(libc::EINVAL);
    }
    errno::or_no_memory(aligned(size, align))
}

/// Hands out `size` bytes at a multiple of `align`, rounded up to a power of two.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.memalign")]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    homenode_core::__aligned_alloc_hit!(memalign_missed)
}

#[cold]
pub(crate) extern "C" fn memalign_missed(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => errno::or_no_memory(aligned(size, align)),
        None => errno::fail(libc::EINVAL),
    }
}

/// Hands out `size` bytes at a multiple of `align` through `out`, which is untouched on failure.
///
/// # Safety
/// `out` may be written.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot.posix_memalign")]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    homenode_core::__posix_memalign_hit!(posix_memalign_missed)
}

/// What [`posix_memalign`] does when it misses.
///
/// # Safety
/// As [`posix_memalign`].
#[cold]
pub(crate) unsafe extern "C" fn posix_memalign_missed(
    out: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let block = aligned(size, align);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's contract.
    unsafe { *out = block.cast() };
    0
}

/// Hands out `size` bytes at a multiple of the base page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    page_aligned(size)
}

/// [`valloc`], not the one that another library may put before it.
pub(crate) fn page_aligned(size: usize) -> *mut c_void {
    errno::or_no_memory(aligned(size, page()))
}

/// Hands out `size` bytes, rounded up to whole base pages, at a multiple of the base page.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    whole_pages(size)
}

/// [`pvalloc`], not the one that another library may put before it.
pub(crate) fn whole_pages(size: usize) -> *mut c_void {
    match size.max(1).checked_next_multiple_of(page()) {
        Some(size) => errno::or_no_memory(aligned(size, page())),
        None => errno::fail(libc::ENOMEM),
    }
}

/// What a sized free does unless the size has the object's class: more than the block has is a fault, less is
/// not.
///
/// # Safety
/// As free.
#[cold]
unsafe extern "C" fn free_sized_missed(block: *mut c_void, size: usize) {
    // SAFETY: the caller's contract.
    unsafe { homenode_core::seam::check_size(block.cast(), size) };
    // SAFETY: the caller's contract.
    unsafe { free_here(block) };
}

/// C23's free with a size, which is only a hint: the class byte is trusted.
///
/// # Safety
/// As free.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, size: usize) {
    homenode_core::__free_sized_hit!(second, free_sized_missed, free_sized_missed)
}

/// C23's free with an alignment and a size.
///
/// # Safety
/// As [`free_sized`].
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, align: usize, size: usize) {
    homenode_core::__free_sized_hit!(third, free_sized_missed, free_sized_missed)
}

/// The largest power of two that divides an address; 0 for null.  C23, 7.24.8.1.
#[unsafe(no_mangle)]
pub extern "C" fn memalignment(pointer: *const c_void) -> usize {
    let address = pointer.addr();
    address & address.wrapping_neg()
}
