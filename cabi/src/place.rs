//! The calls of `homenode.h` about where memory is.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::{self, Write};
use core::ptr::{self, NonNull};

use homenode_core::{NodeError, Policy, SetError};

use crate::errno;

fn fail(errno: c_int) -> c_int {
    errno::set(errno);
    -1
}

/// Sets the policy of the process: 0, or -1 with errno `EINVAL`, `ENODEV`, `ENOSPC`, `EPERM` or `EAGAIN`.
///
/// # Safety
/// `policy` is null or a string; `offset` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_set_policy(policy: *const c_char, offset: *mut usize) -> c_int {
    if policy.is_null() {
        return fail(libc::EINVAL);
    }
    // SAFETY: the caller's contract.
    let bytes = unsafe { CStr::from_ptr(policy) }.to_bytes();
    // What is not UTF-8 is no policy from there on.
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let policy = match text.parse::<Policy>() {
        Ok(policy) if text.len() == bytes.len() => policy,
        wrong => {
            if !offset.is_null() {
                // SAFETY: the caller's contract.
                unsafe { *offset = wrong.map_or_else(|error| error.offset, |_| text.len()) };
            }
            return fail(libc::EINVAL);
        }
    };
    match homenode_core::set_policy(&policy) {
        Ok(()) => 0,
        Err(SetError::NoSuchNode) => fail(libc::ENODEV),
        Err(SetError::TooMany) => fail(libc::ENOSPC),
        Err(SetError::StartOnly) => fail(libc::EPERM),
        Err(SetError::NotNow) => fail(libc::EAGAIN),
    }
}

/// A buffer that takes what fits and counts the rest.
struct Buffer<'a> {
    bytes: &'a mut [u8],
    needed: usize,
}

impl Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for (to, from) in self.bytes.iter_mut().skip(self.needed).zip(text.bytes()) {
            *to = from;
        }
        self.needed += text.len();
        Ok(())
    }
}

/// Writes the policy of the process as text, as [`crate::hn::hn_stats_json`] does.
///
/// # Safety
/// `buffer` may be written for `len` bytes; it may be null when `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_get_policy(buffer: *mut c_char, len: usize) -> usize {
    let bytes: &mut [u8] = if buffer.is_null() || len == 0 {
        &mut []
    } else {
        // SAFETY: the caller's contract.
        unsafe { core::slice::from_raw_parts_mut(buffer.cast::<u8>(), len) }
    };
    let mut text = Buffer { bytes, needed: 0 };
    // A buffer takes everything, and counts what does not fit.
    let _ = write!(text, "{}", homenode_core::process_policy());
    let Buffer { bytes, needed } = text;
    if let Some(last) = bytes.len().checked_sub(1) {
        bytes[needed.min(last)] = 0;
    }
    needed
}

fn block(result: Result<NonNull<u8>, NodeError>) -> *mut c_void {
    match result {
        Ok(block) => block.as_ptr().cast(),
        Err(error) => {
            errno::set(match error {
                NodeError::NoSuchNode => libc::EINVAL,
                NodeError::Exhausted => libc::ENOMEM,
                NodeError::NotOurs => libc::EFAULT,
            });
            ptr::null_mut()
        }
    }
}

/// The kernel's number of a node; one that no kernel has for a negative one.
fn number(node: c_int) -> u32 {
    u32::try_from(node).unwrap_or(u32::MAX)
}

/// Hands out a block on a node; null with errno `EINVAL` or `ENOMEM`.
#[unsafe(no_mangle)]
pub extern "C" fn hn_alloc_onnode(size: usize, node: c_int) -> *mut c_void {
    block(homenode_core::alloc_on_node(size, number(node)))
}

/// The home node of an address; -1 with errno `EFAULT` for memory that is not ours.
#[unsafe(no_mangle)]
pub extern "C" fn hn_node_of(address: *const c_void) -> c_int {
    match homenode_core::node_of(address.cast()) {
        Some(node) => node.cast_signed(),
        None => fail(libc::EFAULT),
    }
}

/// Asks the system where pages are: 0, or -1 with errno `EINVAL` or the system's.
///
/// # Safety
/// `nodes` is null or may be written for `pages` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_pages_of(
    start: *const c_void,
    pages: usize,
    nodes: *mut c_int,
) -> c_int {
    if nodes.is_null() {
        return fail(libc::EINVAL);
    }
    // SAFETY: the caller's contract.
    let nodes = unsafe { core::slice::from_raw_parts_mut(nodes, pages) };
    match homenode_core::pages_of(start.cast(), nodes) {
        Ok(()) => 0,
        Err(errno) => fail(errno),
    }
}

/// Brings a block to a node; null with errno `EINVAL`, `EFAULT` or `ENOMEM`, and it stays.
///
/// # Safety
/// `pointer` was handed out and is live, or is not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hn_migrate(pointer: *mut c_void, node: c_int) -> *mut c_void {
    let Some(pointer) = NonNull::new(pointer.cast()) else {
        return block(Err(NodeError::NotOurs));
    };
    // SAFETY: the caller's contract.
    block(unsafe { homenode_core::migrate(pointer, number(node)) })
}
