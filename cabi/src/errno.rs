//! errno, which this package alone makes.
#![allow(unsafe_code, reason = "errno is a thread's own word in libc")]

use core::ffi::c_void;

/// The value of errno.
pub(crate) fn get() -> i32 {
    // SAFETY: libc returns the address of the calling thread's errno.
    let slot = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *slot }
}

/// Sets errno.
pub(crate) fn set(errno: i32) {
    // SAFETY: libc returns the address of the calling thread's errno.
    let slot = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *slot = errno };
}

/// The block, or null with errno `ENOMEM`.
pub(crate) fn or_no_memory(block: *mut u8) -> *mut c_void {
    if block.is_null() {
        set(libc::ENOMEM);
    }
    block.cast()
}

/// Null with an errno.
pub(crate) fn fail(errno: i32) -> *mut c_void {
    set(errno);
    core::ptr::null_mut()
}
