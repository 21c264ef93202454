//! homenode: a NUMA memory allocator.  Every byte has a home node.
//!
//! | layer | what it does | on a miss it asks |
//! |---|---|---|
//! | `front` | malloc, `GlobalAlloc`: size class, or whole compounds | percpu, pageheap |
//! | `percpu` | one slab a CPU: rseq critical sections, flips, drains | transfer |
//! | `transfer` | batches that wait between CPUs; objects on their way home | slab |
//! | `slab` | per node and class: spans cut into equal objects, a bitmap a span | pageheap |
//! | `pageheap` | per node: compounds of 2 MiB cut into runs of 32 KiB; large blocks | region |
//! | `region` | per node: a slice of address space; commit and decommit | sys |
//! | `policy` | on which nodes memory is to be, in which order they are asked | topo |
//! | `topo` | which nodes there are, how far, and which one a CPU is on | sys |
//! | `sys` | the only layer that knows the kernel and the processor | |
//! | `base` | pure facts and small tools | |
//!
//! Requests go down as arguments, memory comes up as return values, and nothing calls upward.
#![no_std]
#![cfg_attr(
    loom,
    allow(
        dead_code,
        unused_imports,
        unreachable_pub,
        reason = "the model checker sees the lock-free protocols alone"
    )
)]

#[cfg(loom)]
extern crate std;

mod base;
#[cfg(not(loom))]
mod front;
#[cfg(not(loom))]
mod pageheap;
#[cfg(not(loom))]
mod percpu;
#[cfg(not(loom))]
mod policy;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod slab;
#[cfg(not(loom))]
mod sys;
#[cfg(not(loom))]
mod topo;
#[cfg(not(loom))]
mod transfer;

// Under loom: the files that hold a lock-free protocol, and what they stand on.
#[cfg(loom)]
mod pageheap {
    mod bump;
    mod slot;
}
#[cfg(loom)]
mod percpu {
    mod flip;
}
#[cfg(loom)]
mod region {
    pub(crate) mod compound;
    mod frontier;
}
#[cfg(loom)]
mod transfer {
    mod rack;
}
#[cfg(loom)]
mod sys {
    mod generation;
    pub(crate) mod lock;
    pub(crate) mod stand_in;
    use stand_in::{arch, process, wait};
}

#[cfg(not(loom))]
pub use base::nodemask::NodeMask;
#[cfg(not(loom))]
pub use front::{
    Census, FreeBlocks, HomeNode, NodeError, Usage, alloc, alloc_aligned, alloc_on_node,
    alloc_zeroed, calls_until_failure, check, drain_all, drain_cpu, fail_call, fail_calls,
    fit_address_space, free, migrate, node_of, pages_of, print_stats, process_policy, realloc,
    set_policy, stats_json, trim, usable_size,
};
#[cfg(not(loom))]
pub use percpu::{Drained, How};
#[cfg(not(loom))]
pub use policy::{Mode, ParseError, Policy, Reason, SetError};

/// What the C ABI's package is made of; no promise to anyone else.
#[doc(hidden)]
#[cfg(not(loom))]
pub mod seam {
    pub use crate::base::classes::{
        CLASS_BYTES_MAX, GEOMETRIC_BIAS, REMOTE_CLASSES, TABLE, TABLE_MAX,
    };
    pub use crate::base::config::{CPUS_MAX, RUN_SHIFT};
    pub use crate::front::{
        check_size, checks_fully, die_of_no_new, die_of_panic, die_of_stranger, fit_locked_memory,
        fit_physical_memory, free_if_ours, keep_resident, note_locked, say_aside, serves,
        slow_alloc, usable_before_realloc, vfork_begin, vfork_end,
    };
    #[cfg(target_arch = "aarch64")]
    pub use crate::sys::arch::SYS_CLONE;
    pub use crate::sys::arch::{
        HOT, SLAB_BASE_OFFSET, SLAB_LIMITS_OFFSET, SLAB_REGION_OFFSET, SLAB_REMOTE_OFFSET,
        SLAB_RUNS_OFFSET,
    };
}
