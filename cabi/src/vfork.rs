//! vfork: its child runs in the parent's memory as another process, with a stale CPU number, so that
//! critical sections do not protect it.  While one is open, every thread takes the slow path, which
//! knows the child; the kernel's own vfork still costs no page tables.
#![allow(unsafe_code, reason = "a function that returns twice is written in assembler")]

/// vfork(2).
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn vfork() -> i32 {
    homenode_core::__vfork!(fail)
}

extern "C" fn fail(errno: i32) {
    crate::errno::set(errno);
}
