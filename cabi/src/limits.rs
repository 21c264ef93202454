//! Limits on address space and locked memory, set by the program after start: what the allocator has
//! reserved and not used counts there, so most of it is given up first.  The calls themselves are the
//! kernel's, with libc's rules for errno.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{c_int, c_uint};
use core::ptr;

/// setrlimit(2).
///
/// # Safety
/// C's contract: `limit` is null or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit(resource: c_uint, limit: *const libc::rlimit64) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { set(0, resource, limit, ptr::null_mut()) }
}

/// [`setrlimit`] of programs that ask for 64 bits.
///
/// # Safety
/// As [`setrlimit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit64(resource: c_uint, limit: *const libc::rlimit64) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { set(0, resource, limit, ptr::null_mut()) }
}

/// prlimit(2).
///
/// # Safety
/// C's contract: `limit` is null or may be read; `old` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit(
    process: libc::pid_t,
    resource: c_uint,
    limit: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { set(process, resource, limit, old) }
}

/// [`prlimit`] of programs that ask for 64 bits.
///
/// # Safety
/// As [`prlimit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit64(
    process: libc::pid_t,
    resource: c_uint,
    limit: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { set(process, resource, limit, old) }
}

/// # Safety
/// As [`prlimit`].
unsafe fn set(
    process: libc::pid_t,
    resource: c_uint,
    limit: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: getpid has no contract.
    let is_ours = process == 0 || process == unsafe { libc::getpid() };
    if resource == libc::RLIMIT_AS && is_ours && !limit.is_null() {
        // SAFETY: the caller's contract.
        let new = unsafe { *limit };
        // More than the maximum is about to be refused.
        if new.rlim_cur <= new.rlim_max {
            homenode_core::fit_address_space(usize::try_from(new.rlim_cur).unwrap_or(usize::MAX));
        }
    }
    // SAFETY: the caller's contract; libc passes the arguments on and sets errno.
    status(unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, limit, old) })
}

/// mlockall(2).  The system refuses to lock more than `RLIMIT_MEMLOCK` allows, all that is reserved
/// included.
#[unsafe(no_mangle)]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    // SAFETY: locking memory changes nothing of what is in it.
    let lock = || unsafe { libc::syscall(libc::SYS_mlockall, flags) };
    if flags & libc::MCL_CURRENT == 0 {
        // Maps of the future alone: what the heap makes writable from now on is resident at once.
        let result = lock();
        if result == 0 {
            homenode_core::seam::note_locked(flags & libc::MCL_FUTURE != 0);
        }
        return status(result);
    }
    let before = crate::errno::get();
    homenode_core::seam::fit_physical_memory();
    let mut result = lock();
    if result != 0
        && crate::errno::get() == libc::ENOMEM
        && homenode_core::seam::fit_locked_memory()
    {
        result = lock();
    }
    if result == 0 {
        crate::errno::set(before);
        homenode_core::seam::note_locked(true);
    }
    status(result)
}

/// munlockall(2).
#[unsafe(no_mangle)]
pub extern "C" fn munlockall() -> c_int {
    // SAFETY: as in `mlockall`.
    let result = unsafe { libc::syscall(libc::SYS_munlockall) };
    if result == 0 {
        homenode_core::seam::note_locked(false);
    }
    status(result)
}

/// What libc's wrappers return: 0, or -1 with errno.
fn status(result: libc::c_long) -> c_int {
    if result == 0 { 0 } else { -1 }
}
