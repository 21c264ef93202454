//! The start: at the first call of the process, before any constructor, by whichever thread comes first.

use core::cell::UnsafeCell;

use super::checked;
use super::settings::{Settings, refuse_policy};
use crate::base::config::CPUS_MAX;
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::lock::{Lock, Rank};
use crate::sys::{cpu, mem, process, rseq};
use crate::{percpu, policy, region, topo};

/// 1 once the allocator can be used.
static READY: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

/// Bytes for texts of /sys and the mask of all CPUs while starting; not on the stack, of which there may
/// be 1 KiB.
const SCRATCH_BYTES: usize = 2048;

/// Used under [`LOCK`] alone.
static SCRATCH: Scratch = Scratch(UnsafeCell::new([0; SCRATCH_BYTES]));

#[derive(Debug)]
struct Scratch(UnsafeCell<[u8; SCRATCH_BYTES]>);

#[expect(unsafe_code, reason = "a buffer that a lock guards")]
// SAFETY: only the holder of `LOCK` looks inside.
unsafe impl Sync for Scratch {}

const _: () = assert!(SCRATCH_BYTES * 8 >= CPUS_MAX);

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
fn begin() -> bool {
    process::start(cpu::page_bytes());
    mem::start();
    let settings = Settings::read();
    #[expect(unsafe_code, reason = "the buffer of the one that starts")]
    // SAFETY: the caller holds `LOCK`, and this is the one place that uses the buffer.
    let buffer = unsafe { &mut *SCRATCH.0.get() };
    topo::start(settings.fake_nodes, buffer);
    policy::start(|asked, why| refuse_policy(asked, &why));
    let cpus = cpu::possible(buffer);
    let ready = region::start(settings.slice_bytes) && percpu::start(cpus);
    if settings.stats_full {
        rseq::keep_fast_path_closed();
    }
    if ready {
        if settings.check_full {
            // `serves` must not answer from the class alone.
            region::hide_classes();
        }
        // Without rseq every call takes the slow path, and an object that is free is free in its span.
        rseq::start(settings.rseq_off || settings.check_full);
        checked::start(settings.check_full);
    }
    ready
}
