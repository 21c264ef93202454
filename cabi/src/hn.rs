//! The calls of `homenode.h` about caches and statistics.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{c_char, c_int, c_uint};

use homenode_core::{Drained, How};

use crate::errno;

/// The version, as text.
#[unsafe(no_mangle)]
pub extern "C" fn hn_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

fn how_of(how: c_int) -> Option<How> {
    match how {
        0 => Some(How::Auto),
        1 => Some(How::Fence),
        2 => Some(How::Quiet),
        _ => None,
    }
}

/// # Safety
/// `objects` is null or may be written.
unsafe fn tell(drained: Drained, objects: *mut usize) -> c_int {
    let Drained::Objects(count) = drained else { return 1 };
    if !objects.is_null() {
        // SAFETY: the caller's contract.
        unsafe { *objects = usize::try_from(count).unwrap_or(usize::MAX) };
    }
    0
}

/// Drains a CPU: 0 done, 1 pending, -1 with errno `EINVAL` for an unknown `how` or a CPU that no
/// machine has.
///
/// # Safety
/// `objects` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_drain_cpu(cpu: c_uint, how: c_int, objects: *mut usize) -> c_int {
    match how_of(how) {
        // SAFETY: the caller's contract.
        Some(how) if (cpu as usize) < homenode_core::seam::CPUS_MAX => unsafe {
            tell(homenode_core::drain_cpu(cpu, how), objects)
        },
        _ => {
            errno::set(libc::EINVAL);
            -1
        }
    }
}

/// Drains every CPU: as [`hn_drain_cpu`]; pending if one is.
///
/// # Safety
/// `objects` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_drain_all(how: c_int, objects: *mut usize) -> c_int {
    let Some(how) = how_of(how) else {
        errno::set(libc::EINVAL);
        return -1;
    };
    // SAFETY: the caller's contract.
    unsafe { tell(homenode_core::drain_all(how), objects) }
}

/// Writes what homenode has done to a file descriptor: 0, or -1 with errno `EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn hn_print_stats(fd: c_int) -> c_int {
    if homenode_core::print_stats(fd) {
        return 0;
    }
    errno::set(libc::EIO);
    -1
}

/// Writes the same as JSON, at most `len` bytes of it, ended by a null byte if one fits; how many
/// bytes it needs without that.
///
/// # Safety
/// `buffer` may be written for `len` bytes; it may be null when `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_stats_json(buffer: *mut c_char, len: usize) -> usize {
    if buffer.is_null() || len == 0 {
        return homenode_core::stats_json(&mut []);
    }
    // SAFETY: the caller's contract.
    let bytes = unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) };
    let needed = homenode_core::stats_json(bytes);
    bytes[needed.min(len - 1)] = 0;
    needed
}
