//! The start: at the first call of the process, before any constructor, by whichever thread comes first.

use super::settings::Settings;
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::lock::{Lock, Rank};
use crate::sys::{cpu, mem, process, rseq};
use crate::{percpu, region, topo};

const READY: u32 = 1;
const FAILED: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

/// Bytes for texts of /proc and /sys while starting; not on the stack, of which there may be 1 KiB.
const BUFFER_BYTES: usize = 128 << 10;

/// Starts the allocator if nobody has.  False: the system refuses even the least address space.
pub(super) fn ensure() -> bool {
    match STATE.load(Ordering::Acquire) {
        READY => true,
        FAILED => false,
        _ => start(),
    }
}

#[cold]
fn start() -> bool {
    let _held = LOCK.enter(Rank::Start);
    if STATE.load(Ordering::Acquire) == 0 {
        let state = if begin().is_some() { READY } else { FAILED };
        STATE.store(state, Ordering::Release);
        rseq::open_fast_path(state == READY);
    }
    STATE.load(Ordering::Acquire) == READY
}

#[expect(unsafe_code, reason = "a scratch buffer from the system")]
fn begin() -> Option<()> {
    let scratch = mem::map(BUFFER_BYTES).ok()?;
    let first = core::ptr::with_exposed_provenance_mut(scratch);
    // SAFETY: the map is fresh, zeroed, and this function's own.
    let buffer = unsafe { core::slice::from_raw_parts_mut(first, BUFFER_BYTES) };
    process::start(cpu::page_bytes());
    let settings = Settings::read(buffer);
    topo::start(settings.fake_nodes, buffer);
    let cpus = cpu::possible(buffer);
    let ready = region::start(settings.slice_bytes) && percpu::start(cpus);
    rseq::start(settings.rseq_off || !ready);
    mem::release(scratch, BUFFER_BYTES);
    ready.then_some(())
}
