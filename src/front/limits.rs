//! Limits that a program sets itself, after the start: the reservation is cut so that they leave room for
//! other maps, such as the stacks of threads.  See `region`'s modules `extent` and `lengthen`.

use super::busy::Busy;
use super::start;
use crate::region;
use crate::sys::{cpu, process};

/// Gets ready for a limit of `bytes` of address space (`RLIMIT_AS`), which the program is about to set
/// (`usize::MAX`: none): where what is reserved would take more than half of what it leaves, most of that
/// is given up, and mapped again in small steps as it is needed.  libhomenode.so does so in setrlimit and
/// prlimit; a Rust program calls this before it sets one.
pub fn fit_address_space(bytes: usize) {
    if bytes == usize::MAX {
        if !process::is_vfork_child() {
            region::note_left(None);
        }
        return;
    }
    cut(|| {
        let left = left_of(bytes).unwrap_or(0);
        let is_short = left / 2 < region::unused();
        region::note_left(Some(if is_short { left } else { left - region::unused() }));
        (is_short && left > 0).then(region::bearable_step)
    });
}

/// Gets ready for all memory to be locked: the heap keeps at most as much to grow into as the machine has
/// memory, so that the system need not walk tables of terabytes.
pub fn fit_physical_memory() {
    cut(cpu::physical_memory);
}

/// Gets ready for all memory to be locked by a program that may lock only so much (`RLIMIT_MEMLOCK`).
/// False: there is no such limit.
#[must_use]
pub fn fit_locked_memory() -> bool {
    let limit = cpu::lockable();
    if let Some(bytes) = limit {
        cut(|| Some(left_of(bytes)? / 2));
    }
    limit.is_some()
}

/// Says whether all memory is locked from here on: memory is then asked for in small steps, since each is
/// resident at once.
pub fn note_locked(locked: bool) {
    if !process::is_vfork_child() {
        region::note_locked(locked);
    }
}

/// Lets each node keep up to `bytes` of free memory resident, whatever is in use; all of it where that is
/// `usize::MAX`.
pub fn keep_resident(bytes: usize) {
    region::keep_resident(bytes);
}

/// What a limit leaves beside all that is in use; none where it leaves nothing, so that no cut would help.
fn left_of(limit: usize) -> Option<usize> {
    limit.checked_sub(cpu::mapped().saturating_sub(region::unused()))
}

/// Cuts the reservation.  Not from a handler that interrupted the allocator, nor in a child of vfork, whose
/// limits are its own and whose memory is its parent's.
fn cut(keep: impl FnOnce() -> Option<usize>) {
    let Some(_busy) = Busy::enter() else { return };
    // What is reserved later than this would not be cut, or be locked with all that is mapped later.
    let started = start::ensure();
    process::notice_fork();
    if started
        && !process::is_vfork_child()
        && let Some(bytes) = keep()
    {
        region::cut(bytes);
    }
}
