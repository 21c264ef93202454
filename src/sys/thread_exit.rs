//! A word with a thread before it ends: the destructor of a pthread key.
#![allow(unsafe_code, reason = "pthread keys")]

use crate::base::sync::{AtomicU32, Ordering};

/// The key, plus 1; 0: none yet.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Has `ends` called when the calling thread ends.  There is one such function: the first that was
/// named.  False: libc has no key left.
pub(super) fn announce(ends: extern "C" fn(*mut libc::c_void)) -> bool {
    let Some(key) = key(ends) else { return false };
    let value = core::ptr::without_provenance(1);
    // SAFETY: the key exists; any value but null makes its destructor run.
    unsafe { libc::pthread_setspecific(key, value) == 0 }
}

fn key(ends: extern "C" fn(*mut libc::c_void)) -> Option<libc::pthread_key_t> {
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return Some(known - 1);
    }
    let mut made = 0;
    // SAFETY: the key is written to a local; the destructor's code is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut made, Some(ends)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, made + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(made),
        Err(other) => {
            // SAFETY: nobody else knows this key.
            unsafe { libc::pthread_key_delete(made) };
            Some(other - 1)
        }
    }
}
