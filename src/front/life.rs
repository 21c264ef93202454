//! The life of the process around the allocator: vfork, and threads that end.
#![allow(unsafe_code, reason = "pthread keys")]

use super::busy::Busy;
use super::start;
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::lock::{Lock, Rank};
use crate::sys::{process, rseq};

/// A vfork is about to happen: from here on every fast path misses, and slow paths know the child.
/// False: the caller must fork instead, since its handler interrupted the allocator.
pub extern "C" fn vfork_begin() -> bool {
    let Some(_busy) = Busy::enter() else { return false };
    let _held = VFORK.enter(Rank::Start);
    process::count_vfork(true);
    rseq::open_fast_path(false);
    true
}

/// The child of a vfork has ended or runs another program.
pub extern "C" fn vfork_end() {
    // A handler cannot be here: `vfork_begin` of the same call would have refused.
    let _busy = Busy::enter();
    let _held = VFORK.enter(Rank::Start);
    if process::count_vfork(false) == 0 && start::ensure() {
        rseq::open_fast_path(true);
    }
}

/// Orders the count of open vforks and the switch of the fast path.
static VFORK: Lock = Lock::new();

/// The key whose destructor unregisters a thread, plus 1; 0: none yet.
static KEY: AtomicU32 = AtomicU32::new(0);

/// A thread registered its own rseq area: it is unregistered before the thread's memory goes.
pub(super) fn thread_registered() {
    let mut key = KEY.load(Ordering::Acquire);
    if key == 0 {
        let mut made = 0;
        // SAFETY: the key is written to a local; the destructor lives as long as the library, which
        // is never unloaded.
        if unsafe { libc::pthread_key_create(&raw mut made, Some(thread_ends)) } != 0 {
            rseq::unregister_thread();
            return;
        }
        match KEY.compare_exchange(0, made + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => key = made + 1,
            Err(other) => {
                // SAFETY: nobody else knows this key.
                unsafe { libc::pthread_key_delete(made) };
                key = other;
            }
        }
    }
    let value = core::ptr::without_provenance(1);
    // SAFETY: the key exists; any value but null makes its destructor run.
    if unsafe { libc::pthread_setspecific(key - 1, value) } != 0 {
        rseq::unregister_thread();
    }
}

extern "C" fn thread_ends(_: *mut libc::c_void) {
    rseq::unregister_thread();
}
