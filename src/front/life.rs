//! The life of the process around the allocator: vfork.

use super::busy::Busy;
use super::start;
use crate::sys::arch::{SYS_FORK, SYS_VFORK};
use crate::sys::lock::{Lock, Rank};
use crate::sys::{process, rseq};

/// How the assembler goes on, in the two registers that results come in.
#[derive(Debug)]
#[repr(C)]
pub struct Begun {
    /// The system call to make: its number, or the flags of clone where that is the only one.
    call: i64,
    /// What the call is to return, without asking the kernel; 0: the kernel is asked.
    answer: i64,
}

/// A vfork is about to happen; or a fork instead, in a handler that interrupted the allocator, or under qemu-user.
pub extern "C" fn vfork_begin() -> Begun {
    let call = if open() { SYS_VFORK } else { SYS_FORK };
    Begun { call, answer: process::vfork_answer() }
}

/// The call is over, in the parent: the child of a vfork has ended or runs another program, or the
/// system refused to make one.
pub extern "C" fn vfork_end(call: i64, result: i64) {
    process::note_vfork(result);
    if call == SYS_VFORK {
        close();
    }
}

/// From here on every fast path misses, and slow paths know the child.  False: this thread is in the
/// allocator already, or there is no vfork.
fn open() -> bool {
    let Some(_busy) = Busy::enter() else { return false };
    // Never in the child: the process that starts the allocator is the one whose id is kept.
    start::ensure();
    process::notice_fork();
    if !process::has_vfork() {
        return false;
    }
    let _held = VFORK.enter(Rank::Start);
    process::begin_vfork();
    rseq::open_fast_path(false);
    true
}

fn close() {
    // A handler cannot be here: `open` of the same call would have refused.  So a flag that is set was
    // left by a child that was killed.
    let _busy = Busy::enter_anew();
    process::notice_fork();
    let _held = VFORK.enter(Rank::Start);
    if process::end_vfork() == 0 && start::is_ready() {
        rseq::open_fast_path(true);
    }
}

/// Orders the count of open vforks and the switch of the fast path.
static VFORK: Lock = Lock::new();
