//! The process: is this still the one that started, or a child of fork, or a child of vfork?
//!
//! A page that the kernel wipes in children (`MADV_WIPEONFORK`) holds one word, 1 in a process that
//! has been seen, 0 in a child nobody has noticed yet.  Reading it costs one load, finds raw clone
//! too, and is done in slow paths alone.  Where the kernel refuses, or there is none (qemu-user), the process
//! id is asked instead.
#![allow(unsafe_code, reason = "one word on a page of its own; getpid")]

use core::mem::offset_of;

use super::arch::{thread_block, thread_pointer};
use super::fault::{Call, admit, refused};
use super::generation::count_once;
use super::mem::{self, call};
use super::{kernel, rseq};
use crate::base::sync::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// The word of the wiped page in a process that has been seen.
const SEEN: u32 = 1;

static PAGE: AtomicUsize = AtomicUsize::new(0);
static WIPED: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Thread pointer of the thread that lived through the last fork.
static SURVIVOR: AtomicUsize = AtomicUsize::new(0);
/// When that thread was first seen: a later thread may have its thread pointer.
static SURVIVOR_BORN: AtomicU32 = AtomicU32::new(0);
static PID: AtomicU32 = AtomicU32::new(0);

/// Notes this process as seen.  Called once at start; threads that wait for the start look at the page as
/// soon as there is one, so its word is written first: unseen, they would count a fork that never was,
/// and take the start's own lock over.
pub(crate) fn start(page_bytes: usize) {
    if seen().is_some() {
        return;
    }
    PID.store(pid(), Ordering::Relaxed);
    SURVIVOR.store(thread_pointer(), Ordering::Relaxed);
    let Ok(page) = mem::map(page_bytes) else { return };
    kernel::start(page, page_bytes);
    if !kernel::is_emulated() && mem::wipe_on_fork(page, page_bytes).is_ok() {
        WIPED.store(1, Ordering::Relaxed);
    }
    word(page).store(SEEN, Ordering::Relaxed);
    // Release: who finds the page finds it written.
    PAGE.store(page, Ordering::Release);
}

fn seen() -> Option<&'static AtomicU32> {
    // Acquire: see `start`.
    let page = PAGE.load(Ordering::Acquire);
    (page != 0).then(|| word(page))
}

fn word(page: usize) -> &'static AtomicU32 {
    // SAFETY: the page was mapped at start, for this word, and stays.
    unsafe { mem::record(page) }
}

/// Counts a new generation when this is a child of fork that nobody noticed before.
pub(crate) fn notice_fork() {
    match seen() {
        Some(seen) if WIPED.load(Ordering::Relaxed) != 0 => count_once(seen, SEEN, || {
            PID.store(pid(), Ordering::Relaxed);
            begin_generation();
        }),
        _ => notice_by_pid(),
    }
    let born = &thread_block().born;
    if born.load(Ordering::Relaxed) == 0 {
        born.store(generation() + 1, Ordering::Relaxed);
    }
}

/// The slower way, for kernels that refuse to wipe.  A child of vfork is told apart by its memory:
/// the count of open vforks is above zero.
#[cold]
fn notice_by_pid() {
    // Zero is before the start.
    if PID.load(Ordering::Relaxed) != 0 && vforks() == 0 {
        let now = pid();
        // A sandbox that refuses the question is no new process.
        if now != 0 {
            count_once(&PID, now, begin_generation);
        }
    }
}

fn begin_generation() {
    SURVIVOR.store(thread_pointer(), Ordering::Relaxed);
    SURVIVOR_BORN.store(thread_block().born.load(Ordering::Relaxed), Ordering::Relaxed);
    if VFORKS.swap(0, Ordering::Relaxed) > 0 {
        // Another thread of the parent had a vfork open; its child is not in this memory.
        rseq::open_fast_path(true);
    }
    GENERATION.store((GENERATION.load(Ordering::Relaxed) + 1) & 0xffff, Ordering::Relaxed);
}

/// Forks between the first process and this one, modulo 2^16.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// True when the thread `owner`, which took a lock in `generation`, is the one that lived through the
/// last fork, and not an older one whose thread pointer it has.
pub(super) fn survived(owner: usize, generation: u32) -> bool {
    let born = SURVIVOR_BORN.load(Ordering::Relaxed);
    owner == SURVIVOR.load(Ordering::Relaxed) / 64 * 64 && born != 0 && generation + 1 >= born
}

/// True only while the calling thread is the process's only one, as far as libc can tell without a system call.
/// glibc 2.32, `__libc_single_threaded`.
pub(crate) fn has_one_thread() -> bool {
    let word = crate::__weak_symbol!("__libc_single_threaded");
    // SAFETY: libc defines the symbol as a char, which it writes for as long as the program runs.
    word != 0 && unsafe { mem::record::<AtomicU8>(word) }.load(Ordering::Relaxed) != 0
}

static VFORKS: AtomicU32 = AtomicU32::new(0);

/// Children of vfork that may run in this memory now.
pub(crate) fn vforks() -> u32 {
    VFORKS.load(Ordering::Relaxed)
}

/// False where vfork is fork: its child is then treated as one of fork.
pub(crate) fn has_vfork() -> bool {
    !kernel::is_emulated()
}

/// Counts a vfork about to happen.
pub(crate) fn begin_vfork() {
    VFORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts a vfork that is over; how many are left.  In a child of fork there may be none any more.
pub(crate) fn end_vfork() -> u32 {
    let left = vforks().saturating_sub(1);
    VFORKS.store(left, Ordering::Relaxed);
    left
}

/// What vfork, or the fork in its place, is to return without asking the kernel: a negative error number
/// when a test wants it to fail, 0 otherwise.
pub(crate) fn vfork_answer() -> i64 {
    admit(Call::Vfork).map_or_else(|errno| -i64::from(errno.0), |()| 0)
}

/// Counts the call's result when it is a refusal.
pub(crate) fn note_vfork(result: i64) {
    if result < 0 {
        refused(Call::Vfork);
    }
}

/// True in a child of vfork: another process in this one's memory, whose CPU number is stale.
pub(crate) fn is_vfork_child() -> bool {
    vforks() > 0 && pid() != PID.load(Ordering::Relaxed)
}

/// Page faults of the process, those that waited for a disk apart; zeros where the kernel refuses.  Kernel:
/// getrusage(2), `ru_minflt`, `ru_majflt`.
pub(crate) fn page_faults() -> [u64; 2] {
    const SELF: usize = libc::RUSAGE_SELF.cast_unsigned() as usize;
    let mut usage = [0_u64; size_of::<libc::rusage>() / 8];
    let address = usage.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel fills a struct rusage, which the buffer has the length and alignment of.
    let done = unsafe { call(Call::Getrusage, libc::SYS_getrusage, [SELF, address, 0, 0, 0, 0]) };
    if done.is_err() {
        return [0; 2];
    }
    [offset_of!(libc::rusage, ru_minflt), offset_of!(libc::rusage, ru_majflt)]
        .map(|offset| usage[offset / 8])
}

const _: () = assert!(size_of::<libc::rusage>().is_multiple_of(8));

/// The process id, from the kernel.
pub(crate) fn pid() -> u32 {
    // SAFETY: getpid has no arguments and cannot fail.
    let pid = unsafe { call(Call::Getpid, libc::SYS_getpid, [0; 6]) };
    pid.ok().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}
