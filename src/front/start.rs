//! The start: at the first call of the process, before any constructor, by whichever thread comes first.

use super::settings::Settings;
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::lock::{Lock, Rank};
use crate::sys::{cpu, mem, process, rseq};
use crate::{percpu, region, topo};

/// 1 once the allocator can be used.
static READY: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

/// Bytes for texts of /proc and /sys while starting; not on the stack, of which there may be 1 KiB.
const BUFFER_BYTES: usize = 128 << 10;

/// Starts the allocator if nobody has.  False: the system refuses even the least address space; the
/// next call tries again.
pub(super) fn ensure() -> bool {
    is_ready() || start()
}

/// True when the allocator can be used.
pub(super) fn is_ready() -> bool {
    READY.load(Ordering::Acquire) != 0
}

#[cold]
fn start() -> bool {
    let _held = LOCK.enter(Rank::Start);
    if !is_ready() && begin() {
        READY.store(1, Ordering::Release);
        // Where the start before a vfork failed, a child may be the one that starts.
        rseq::open_fast_path(process::vforks() == 0);
    }
    is_ready()
}

/// Every part may be begun again after a later one failed.
#[expect(unsafe_code, reason = "a scratch buffer from the system")]
fn begin() -> bool {
    let Ok(scratch) = mem::map(BUFFER_BYTES) else { return false };
    let first = core::ptr::with_exposed_provenance_mut(scratch);
    // SAFETY: the map is fresh, zeroed, and this function's own.
    let buffer = unsafe { core::slice::from_raw_parts_mut(first, BUFFER_BYTES) };
    process::start(cpu::page_bytes());
    let settings = Settings::read(buffer);
    topo::start(settings.fake_nodes, buffer);
    let cpus = cpu::possible(buffer);
    let ready = region::start(settings.slice_bytes) && percpu::start(cpus);
    if ready {
        rseq::start(settings.rseq_off);
    }
    mem::release(scratch, BUFFER_BYTES);
    ready
}
