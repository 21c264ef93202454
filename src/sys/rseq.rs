//! Which rseq registration the process runs on, chosen once at start, and the thread's part in it.
//!
//! | mode | when | a thread's area |
//! |---|---|---|
//! | libc | glibc 2.35 and later registers each thread | `__rseq_offset` |
//! | own | no libc registration: musl, `glibc.pthread.rseq=0` | our [`super::arch::ThreadBlock`], registered at a thread's first miss, unregistered by a pthread key's destructor before the thread is gone |
//! | none | the kernel or a sandbox refuses (valgrind, gVisor, old kernels), its sections are not sound ([`super::kernel`]), or by setting | every call takes the slow path |
#![allow(unsafe_code, reason = "rseq(2), membarrier(2), and sections that need both")]

use super::arch::{
    HOT, RSEQ_BYTES, RSEQ_CPU_ID, RSEQ_SIGNATURE, cpu_id_at, flip_own, libc_rseq, pop_many,
    push_many,
};
use super::arch::{thread_block, thread_block_offset, thread_pointer};
use super::errno::Errno;
use super::fault::Call;
use super::mem::call;
use super::{kernel, thread_exit};
use crate::base::ids::CpuId;
use crate::base::sync::{AtomicU32, Ordering};

/// How threads are registered for rseq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RseqMode {
    /// Nobody is: each call takes the slow path.
    None,
    /// libc registers each thread.
    Libc,
    /// The allocator registers each thread.
    Own,
}

const UNREGISTERED: u32 = u32::MAX;
const REFUSED: u32 = u32::MAX - 1;

static MODE: AtomicU32 = AtomicU32::new(0);
static FENCE: AtomicU32 = AtomicU32::new(0);
/// 1 where the fast path stays closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// Chooses the mode and asks for the fence.  `off` forces mode none.
pub(crate) fn start(off: bool) {
    let (mode, offset) = choose(off);
    MODE.store(mode as u32, Ordering::Relaxed);
    HOT.cold_rseq_offset.store(offset, Ordering::Relaxed);
    if mode != RseqMode::None {
        register_fence();
    }
}

fn choose(off: bool) -> (RseqMode, usize) {
    if off || !kernel::rseq_is_sound() {
        return (RseqMode::None, 0);
    }
    if let Some((offset, size)) = libc_rseq()
        && size != 0
    {
        return (RseqMode::Libc, offset.cast_unsigned());
    }
    if register_thread() {
        return (RseqMode::Own, thread_block_offset().cast_unsigned());
    }
    (RseqMode::None, 0)
}

/// The mode chosen at start.
pub(crate) fn mode() -> RseqMode {
    match MODE.load(Ordering::Relaxed) {
        1 => RseqMode::Libc,
        2 => RseqMode::Own,
        _ => RseqMode::None,
    }
}

/// Keeps the fast path closed, whatever [`open_fast_path`] says: every call is one of the slow path, which
/// uses the slabs and counts.  Before the start ends.
pub(crate) fn keep_fast_path_closed() {
    CLOSED.store(1, Ordering::Relaxed);
}

/// True when the fast path stays closed.
pub(crate) fn is_fast_path_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) != 0
}

/// Sends every thread's fast path through the slow path, or lets it run.
pub(crate) fn open_fast_path(open: bool) {
    let offset = if open && !is_fast_path_closed() {
        HOT.cold_rseq_offset.load(Ordering::Relaxed)
    } else {
        0
    };
    // Release: a section that sees the offset sees the table, too.  Its two loads stay in order on
    // x86-64; on aarch64 the second one's address depends on the first.
    HOT.rseq_offset.store(offset, Ordering::Release);
}

/// Registers this thread's own area with the kernel.  Kernel: rseq(2), 4.18.
fn register_thread() -> bool {
    let block = thread_block();
    if block.cpu_id.load(Ordering::Relaxed) != UNREGISTERED {
        return block.cpu_id.load(Ordering::Relaxed) != REFUSED;
    }
    if rseq(0).is_err() {
        // Remembered, so that it is not tried at each miss.
        block.cpu_id.store(REFUSED, Ordering::Relaxed);
        return false;
    }
    if !thread_exit::announce(unregister_thread) {
        unregister_thread(core::ptr::null_mut());
        return false;
    }
    true
}

/// Takes the thread's own area from the kernel, before the thread's memory goes.
extern "C" fn unregister_thread(_: *mut libc::c_void) {
    const RSEQ_FLAG_UNREGISTER: usize = 1;
    if rseq(RSEQ_FLAG_UNREGISTER).is_ok() {
        thread_block().cpu_id.store(REFUSED, Ordering::Relaxed);
    }
}

fn rseq(flags: usize) -> Result<usize, Errno> {
    let area = thread_pointer().wrapping_add_signed(thread_block_offset());
    // SAFETY: the area is this thread's TLS, aligned to 64; the kernel writes it until it is
    // unregistered, which the key's destructor does before the thread is gone.
    unsafe {
        call(Call::Rseq, libc::SYS_rseq, [area, RSEQ_BYTES, flags, RSEQ_SIGNATURE as usize, 0, 0])
    }
}

/// The CPU this thread runs on, if its sections can run at all.  Registers the thread in mode own.
pub(crate) fn current_cpu() -> Option<CpuId> {
    let offset = HOT.cold_rseq_offset.load(Ordering::Relaxed);
    if offset == 0 {
        return None;
    }
    let mut id = cpu_id_at(offset.cast_signed());
    if id == -1 && mode() == RseqMode::Own && register_thread() {
        id = cpu_id_at(offset.cast_signed());
    }
    u32::try_from(id).ok().map(CpuId)
}

/// The CPU this thread runs on, or ran on a moment ago, for a choice that need not be right.
pub(crate) fn cpu_hint() -> Option<CpuId> {
    let offset = HOT.cold_rseq_offset.load(Ordering::Relaxed);
    if offset == 0 {
        return None;
    }
    u32::try_from(cpu_id_at(offset.cast_signed())).ok().map(CpuId)
}

/// The CPU and the kernel's node that this thread runs on, as the kernel keeps them beside `cpu_id`; none where
/// it does not (before 6.3, where the word is 0 on every node).  Kernel: `AT_RSEQ_FEATURE_SIZE`, rseq.h.
pub(crate) fn node_hint() -> Option<(CpuId, u32)> {
    const NODE_ID: isize = 20;
    const FEATURES_WITH_NODE: u64 = 24;
    let offset = HOT.cold_rseq_offset.load(Ordering::Relaxed).cast_signed();
    // SAFETY: getauxval reads the auxiliary vector, and does not allocate.
    if offset == 0 || unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) } < FEATURES_WITH_NODE {
        return None;
    }
    let cpu = cpu_id_at(offset);
    let node = cpu_id_at(offset + NODE_ID - RSEQ_CPU_ID.cast_signed());
    // The thread may have moved between the two.
    let same = cpu_id_at(offset) == cpu;
    Some((CpuId(u32::try_from(cpu).ok()?), u32::try_from(node).ok()?)).filter(|_| same)
}

/// The auxiliary vector's entry for what the kernel keeps in an rseq area (linux/auxvec.h).
const AT_RSEQ_FEATURE_SIZE: u64 = 27;

/// A number that differs from thread to thread, mostly.
pub(crate) fn thread_hint() -> usize {
    let pointer = thread_pointer();
    // Thread blocks stand at the ends of stacks, which are pages and megabytes apart.
    (pointer >> 12) ^ (pointer >> 20)
}

/// Pushes objects on a stack of `cpu`'s slab; returns how many went in: none on another CPU.
pub(crate) fn push(cpu: CpuId, stack: usize, objects: &[usize]) -> usize {
    debug_assert!(HOT.cold_rseq_offset.load(Ordering::Relaxed) != 0);
    // SAFETY: a `CpuId` of this layer comes from `current_cpu`, so rseq is known; the objects are the
    // caller's, who gives them away.
    unsafe { push_many(cpu.0, stack, objects) }
}

/// Pops objects from a stack of `cpu`'s slab; returns how many came: none on another CPU.
pub(crate) fn pop(cpu: CpuId, stack: usize, objects: &mut [usize]) -> usize {
    debug_assert!(HOT.cold_rseq_offset.load(Ordering::Relaxed) != 0);
    // SAFETY: as in `push`.
    unsafe { pop_many(cpu.0, stack, objects) }
}

/// Changes the slab of the CPU this thread runs on.  True: no section uses `old` any more.
///
/// # Safety
/// The caller holds the CPU's flip lock, and `new` is a slab that stays.
pub(crate) unsafe fn flip(cpu: CpuId, old: usize, new: usize) -> bool {
    // SAFETY: the caller's promise; rseq is known, as in `push`.
    unsafe { flip_own(cpu.0, old, new) }
}

/// Asks for the right to fence: cheap before there are threads, 10 ms after.
fn register_fence() {
    const REGISTER_PRIVATE_EXPEDITED_RSEQ: usize = 1 << 8;
    // SAFETY: registering changes nothing but what later calls may do.
    let result = unsafe {
        call(
            Call::Membarrier,
            libc::SYS_membarrier,
            [REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0, 0, 0, 0],
        )
    };
    FENCE.store(u32::from(result.is_ok()), Ordering::Relaxed);
}

/// True when [`fence_cpu`] was granted at start.
pub(crate) fn can_fence() -> bool {
    FENCE.load(Ordering::Relaxed) != 0
}

/// Ends the critical section that `cpu` may be in: it starts again and sees all that was stored
/// before.  Kernel: membarrier(2), `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`, 5.10.
pub(crate) fn fence_cpu(cpu: CpuId) -> Result<(), Errno> {
    const PRIVATE_EXPEDITED_RSEQ: usize = 1 << 7;
    const FLAG_CPU: usize = 1;
    let fence = |flags| {
        // SAFETY: a barrier changes no memory.
        unsafe {
            call(
                Call::Membarrier,
                libc::SYS_membarrier,
                [PRIVATE_EXPEDITED_RSEQ, flags, cpu.index(), 0, 0, 0],
            )
        }
    };
    let mut result = fence(FLAG_CPU);
    if result == Err(Errno::PERM) {
        register_fence();
        result = fence(FLAG_CPU);
    }
    if result.is_err() {
        // A sandbox was entered since: not asked again.
        FENCE.store(0, Ordering::Relaxed);
    }
    result.map(|_| ())
}
