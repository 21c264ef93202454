//! Sleeping on a 64-bit word by its low half.  Kernel: futex(2), private, little endian.
#![allow(unsafe_code, reason = "the futex calls")]

use super::fault::Call;
use super::mem::call;
use crate::base::sync::AtomicU64;

/// The longest sleep.  A child of fork whose thread was about to sleep has nobody to wake it: the
/// other threads are gone.  It finds out by itself when it wakes.
const SLEEP: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Sleeps while the word's low half is that of `value`; may wake for no reason.
pub(super) fn wait_while(word: &AtomicU64, value: u64) {
    let low = usize::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
    futex(word, libc::FUTEX_WAIT, low, core::ptr::from_ref(&SLEEP).expose_provenance());
}

/// Wakes one sleeper.
pub(super) fn wake_one(word: &AtomicU64) {
    futex(word, libc::FUTEX_WAKE, 1, 0);
}

fn futex(word: &AtomicU64, operation: i32, value: usize, timeout: usize) {
    let address = core::ptr::from_ref(word).expose_provenance();
    let operation = usize::try_from(operation | libc::FUTEX_PRIVATE_FLAG).unwrap_or(0);
    // SAFETY: the word is live for the call.  An interrupted or refused sleep is a wake for no reason.
    let _ =
        unsafe { call(Call::Futex, libc::SYS_futex, [address, operation, value, timeout, 0, 0]) };
}
