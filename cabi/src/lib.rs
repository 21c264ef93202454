//! homenode for C and C++: converts, forwards, makes null and errno.
//!
//! | file | what it exports |
//! |---|---|
//! | `malloc.rs` | malloc, free, calloc, realloc, and their family |
//! | `aligned.rs` | the aligned entries, and the sized frees of C23 |
//! | `libc_names.rs` | second names of both: `__libc_malloc` and the like |
//! | `cxx.rs` | operator new and delete of C++17 |
//! | `tune.rs` | mallopt, mallinfo, malloc_trim, malloc_stats, malloc_info |
//! | `hn.rs` | the `hn_` calls of `homenode.h` |
//! | `limits.rs` | setrlimit, prlimit, mlockall: the reservation is cut to what they allow |
//! | `vfork.rs` | vfork, whose child must not take the fast path |
//! | `place.rs` | the `hn_` calls about nodes and policies |
//! | `begin.rs` | nothing: where in a page malloc begins |
//! | `next.rs` | the next allocator, found at start |
//! | `aside.rs` | sanitizers, whose allocator serves in our place |
#![no_std]

pub mod aligned;
mod aside;
#[cfg(target_arch = "x86_64")]
mod begin;
pub mod cxx;
mod errno;
pub mod hn;
pub mod libc_names;
pub mod limits;
pub mod malloc;
mod next;
pub mod place;
pub mod tune;
pub mod vfork;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    homenode_core::seam::die_of_panic(info)
}

/// Debug builds of core refer to it; nothing here unwinds.
#[cfg(debug_assertions)]
#[expect(unsafe_code, reason = "the name is fixed by the compiler")]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
