//! A thread is in a slow path at most once: a signal handler that interrupts one takes no lock.
//!
//! The flag is the thread's own word, set before the first lock and cleared after the last, so a
//! handler sees it whenever its thread may hold a lock.  Handlers nest, so each one that sees the
//! flag clear may set it: the thread below is not in a slow path then.

use crate::base::sync::Ordering;
use crate::sys::arch::thread_block;

/// The thread's right to take locks; gives it back when dropped.
#[derive(Debug)]
pub(super) struct Busy(());

impl Busy {
    /// None: this is a signal handler that interrupted its own thread in a slow path.
    pub(super) fn enter() -> Option<Self> {
        let busy = &thread_block().busy;
        if busy.load(Ordering::Relaxed) != 0 {
            return None;
        }
        busy.store(1, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Some(Self(()))
    }

    /// Takes the right whether or not the flag is set.
    pub(super) fn enter_anew() -> Self {
        thread_block().busy.store(1, Ordering::Relaxed);
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        thread_block().busy.store(0, Ordering::Relaxed);
    }
}
