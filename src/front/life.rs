//! The life of the process around the allocator: vfork.

use super::busy::Busy;
use super::start;
use crate::sys::lock::{Lock, Rank};
use crate::sys::{process, rseq};

/// A vfork is about to happen: from here on every fast path misses, and slow paths know the child.
/// False: the caller must fork instead, since its handler interrupted the allocator.
pub extern "C" fn vfork_begin() -> bool {
    let Some(_busy) = Busy::enter() else { return false };
    // Never in the child: the process that starts the allocator is the one whose id is kept.
    start::ensure();
    process::notice_fork();
    let _held = VFORK.enter(Rank::Start);
    process::begin_vfork();
    rseq::open_fast_path(false);
    true
}

/// The child of a vfork has ended or runs another program.
pub extern "C" fn vfork_end() {
    // A handler cannot be here: `vfork_begin` of the same call would have refused.  So a flag that is
    // set was left by a child that was killed.
    let _busy = Busy::enter_anew();
    process::notice_fork();
    let _held = VFORK.enter(Rank::Start);
    if process::end_vfork() == 0 && start::is_ready() {
        rseq::open_fast_path(true);
    }
}

/// Orders the count of open vforks and the switch of the fast path.
static VFORK: Lock = Lock::new();
