//! The arch seam: what a processor must offer, and the words its sections share.
//!
//! An architecture is one folder with: `RSEQ_SIGNATURE`, `UNSOUND_RSEQ`, `SYS_FORK`, `SYS_VFORK`,
//! `thread_pointer`, `thread_block_offset`, `cpu_id_at`, `syscall`, the sections `push_many`,
//! `pop_many`, `flip_own`, and the macros `__alloc_hit`, `__alloc_class_hit`, `__free_hit`,
//! `__free_class_hit`, `__free_sized_hit`, `__zeroed_hit`, `__aligned_alloc_hit`, `__posix_memalign_hit`,
//! `__throwing_new`, `__nothrow_new`, `__handler_returns`, `__vfork`, `__weak_symbol`, `__call`, `__on_aligned_stack`.
//!
//! The slab as the sections see it (one per CPU, built by the percpu layer):
//! ```text
//! byte 0      tops[192]     one past the top object of each stack: 128 classes, then 64 other nodes
//! byte 1536   limits[192]   where each stack is full; a stack begins one null word past the
//!                           limit of the stack before it, and that null word ends a pop
//! byte 3072   base          first byte of the home node's slice: its class bytes start there
//! byte 3080   runs          runs of that slice; 0 makes every free miss
//! byte 3088   heap bytes    offset of the slice's second class bytes, those of Heaps
//! byte 3096   generation    counts the slabs this CPU has had
//! byte 3104   node, cpu     whose slab this is, 32 bits each
//! byte 3112   region        first byte of the first node's slice
//! byte 3120   region bytes  of all slices together; 0 makes every free of another node's object miss
//! byte 3128   slice shift   a slice's bytes are this power of two
//! byte 4096   stacks
//! ```
//! Tops and limits are addresses, not indices: on the processors measured, a load whose address is
//! a bare register is forwarded from the store before it at once, a scaled one is not (malloc and
//! free of one object: 4.6 ns against 8.9 ns on Sapphire Rapids).
#![allow(unsafe_code, reason = "TLS words, and words of libc that may be missing")]

use crate::base::classes::CLASSES;
use crate::base::config::NODES_MAX;
use crate::base::sync::{AtomicU32, AtomicUsize};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "aarch64")]
use aarch64 as own;
#[cfg(target_arch = "x86_64")]
use x86_64 as own;

#[cfg(target_arch = "aarch64")]
pub use aarch64::SYS_CLONE;
pub(crate) use own::{
    RSEQ_SIGNATURE, SYS_FORK, SYS_VFORK, UNSOUND_RSEQ, cpu_id_at, flip_own, pop_many, push_many,
    syscall, thread_block_offset, thread_pointer,
};

/// The table by which a frame of `__handler_returns` catches all that the call from 22 to 33 throws, at 55, and the
/// pointer to the function that reads it, null in programs without C++.
#[doc(hidden)]
#[macro_export]
macro_rules! __catch_all {
    () => {
        concat!(
            ".pushsection .gcc_except_table,\"a\",@progbits\n.balign 4\n.Lhomenode_catch:\n",
            // Landing pads count from the function's start; types are pointers to pointers.
            ".byte 0xff, 0x9b\n.uleb128 99f - 66f\n66: .byte 1\n.uleb128 88f - 77f\n",
            // The call, its landing pad, and its action: the first one.
            "77: .uleb128 22b - 11b\n.uleb128 33b - 22b\n.uleb128 55b - 11b\n.uleb128 1\n",
            // That action catches the first type, and is the last; a null type is all types.
            "88: .byte 1, 0\n.balign 4\n.long 0\n99:\n.popsection\n",
            ".pushsection .data.rel.ro,\"aw\",@progbits\n.balign 8\n.Lhomenode_personality:\n",
            ".quad __gxx_personality_v0\n.popsection\n",
        )
    };
}

/// Stacks of a slab: classes first, then one for each other node.
pub(crate) const STACKS: usize = 192;
/// Stack of objects whose home is node 0; the others follow.
pub(crate) const REMOTE_STACK: usize = 128;
/// Offset of the limits from the slab, in bytes.
pub const SLAB_LIMITS_OFFSET: usize = STACKS * 8;
/// Offset of the slice's base from the slab, in bytes.
pub const SLAB_BASE_OFFSET: usize = 2 * STACKS * 8;
/// Offset of the slice's number of runs from the slab, in bytes.
pub const SLAB_RUNS_OFFSET: usize = SLAB_BASE_OFFSET + 8;
/// Offset of the region's base, length and the slice shift from the slab, in bytes.
pub const SLAB_REGION_OFFSET: usize = SLAB_BASE_OFFSET + 40;
/// Offset of the top of node 0's objects from the slab, in bytes.
pub const SLAB_REMOTE_OFFSET: usize = REMOTE_STACK * 8;

/// Offset of `cpu_id` in an rseq area, in bytes (linux/rseq.h).
pub(crate) const RSEQ_CPU_ID: usize = 4;
/// Bytes of an rseq area as first registered by Linux 4.18; every kernel takes this length.
pub(crate) const RSEQ_BYTES: usize = 32;

/// A release of the kernel: three numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Release(pub(crate) [u32; 3]);

/// The words that every section reads; zero until the allocator is ready.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Hot {
    /// Address of the slab table's entry for CPU 0.
    pub(crate) table: AtomicUsize,
    /// Offset of the thread's rseq area from its thread pointer; 0 sends every fast path to its
    /// slow path: before start, in mode none, and while a vfork child may run.
    pub(crate) rseq_offset: AtomicUsize,
    /// The same for the sections of the slow path, which know a vfork child when they meet one.
    pub(crate) cold_rseq_offset: AtomicUsize,
}

/// The words that every section reads.
#[cfg(not(loom))]
pub static HOT: Hot = Hot {
    table: AtomicUsize::new(0),
    rseq_offset: AtomicUsize::new(0),
    cold_rseq_offset: AtomicUsize::new(0),
};

/// A thread's own words, in initial-exec TLS.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct ThreadBlock {
    /// `cpu_id_start` of our own rseq area, used where libc registers none.
    cpu_id_start: AtomicU32,
    /// `cpu_id`: -1 until registered, -2 where the kernel refused.
    pub(crate) cpu_id: AtomicU32,
    rest: [AtomicU32; 6],
    /// 1 while the thread is in a slow path: a signal handler that finds it set must take no lock.
    pub(crate) busy: AtomicU32,
    /// Generation of the process when the thread first came here, plus 1; 0 before that.
    pub(crate) born: AtomicU32,
    /// Ranks of the locks that the thread holds, a bit each; checked in debug builds.
    pub(crate) ranks: AtomicU32,
}

/// This thread's own words.
pub(crate) fn thread_block() -> &'static ThreadBlock {
    let address = thread_pointer().wrapping_add_signed(thread_block_offset());
    // SAFETY: the block is this thread's TLS, of this type, and all its fields are atomics; no
    // caller keeps the reference past the call it serves, so it dies before the thread does.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

/// What libc says of its rseq registration: offset and size; none where libc has no such symbols.
pub(crate) fn libc_rseq() -> Option<(isize, u32)> {
    let offset: *const isize =
        core::ptr::with_exposed_provenance(crate::__weak_symbol!("__rseq_offset"));
    let size: *const u32 = core::ptr::with_exposed_provenance(crate::__weak_symbol!("__rseq_size"));
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: libc defines the symbol as a constant of this type (rseq.h, glibc 2.35).
    let offset = unsafe { *offset };
    // SAFETY: as above.
    Some((offset, unsafe { *size }))
}

/// libc's `environ`: null before libc has set it, or where there is none.
pub(crate) fn environ() -> *const *const u8 {
    let slot: *const *const *const u8 =
        core::ptr::with_exposed_provenance(crate::__weak_symbol!("environ"));
    if slot.is_null() {
        return core::ptr::null();
    }
    // SAFETY: libc defines `environ` as a pointer of this type.
    unsafe { *slot }
}

// The sections name these offsets as numbers.
const _: () = assert!(core::mem::offset_of!(Hot, table) == 0);
const _: () = assert!(core::mem::offset_of!(Hot, rseq_offset) == 8);
const _: () = assert!(core::mem::offset_of!(Hot, cold_rseq_offset) == 16);
const _: () = assert!(RSEQ_CPU_ID == 4);
const _: () = assert!(CLASSES <= REMOTE_STACK && REMOTE_STACK + NODES_MAX == STACKS);
const _: () = assert!(core::mem::offset_of!(ThreadBlock, busy) == RSEQ_BYTES);
const _: () = assert!(size_of::<ThreadBlock>() == 64);
