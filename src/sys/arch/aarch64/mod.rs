//! aarch64, little-endian, Armv8.0: registers and the system call with the kernel's own answer; the thread's
//! own words in initial-exec TLS; libc's symbols that may be missing; the critical sections of the hit
//! paths ([`hit`]) and of the slow paths (`cold`), and what C and C++ need ([`abi`]).
//!
//! # A section, instruction by instruction
//! Memory is weakly ordered here, but a thread sees its own accesses in program order, the threads that take
//! turns on one CPU see each other's through the kernel's context switch, and an interrupt comes between
//! two instructions.  So what only the CPU's own threads touch needs no order, and the words that
//! others write are read through addresses that depend on what was read before (Arm ARM, B2.3: an address
//! dependency orders two reads).
//!
//! | | instructions | order | why |
//! |---|---|---|---|
//! | A1 | `ldr x11, [hot, #8]`; `cbz` | plain | the offset; zero leaves before anything else is read |
//! | A2 | `eor x11, x11, x11`; `ldr x10, [hot, x11]` | address dependency on A1 | the table was stored before the offset was released (`rseq::open_fast_path`). An `ldar` at A1 would be an instruction shorter, and would wait for every earlier `stlr` of the program |
//! | A3 | `str x13, [x12, #8]`, the last before the section | plain | the kernel reads the descriptor when it interrupts this thread: what comes before in program order is done |
//! | A4 | `ldrsw x12, [x12, #4]`, the first of the section | plain, after A3 | the CPU; moved away from it later on, the thread restarts |
//! | A5 | `ldr x10, [x10, x12, lsl #3]` | address dependency on A4 | the slab: F2 of `percpu::flip` |
//! | A6 | loads of the slab's words | address dependency on A5 | a drain made them before it showed the slab (F4 there); after that only this CPU's threads write them |
//! | A7 | `ldrb` of the class byte | address dependency on the object | who handed the object out wrote it before; the pointer came to this thread in an order of the program's |
//! | A8 | `str x0, [x12], #8`: the object's slot | plain | above the top: nobody's, until A9 |
//! | A9 | `str x12, [x11]`, the last of the section | plain | the commit: label 55 is the address right after it. A drain reads top and slots after it proved that the section ended: the proof (fence, answer, task seen away) orders |
//!
//! Of the two stores of a push only the first may be done when the section is aborted, and it writes a free
//! slot.  Loads with write-back (`ldr x13, [x12, #-8]!`) change registers that an abort makes anew:
//! the handler goes to label 22 with the arguments (x0 to x2), class (x9) and length (x15) as they were.
//! The handler's signature is the `brk` that glibc registers (bits/rseq.h): a jump that goes there traps.
//!
//! # Kernels whose sections are not sound
//! From 6.19 on a section is not aborted when its thread is preempted and comes back to the same CPU:
//! "rseq: Optimize event setting" (39a167560a61) relies on a note of interrupts that arm64's entry code did
//! not take.  "arm64/entry: Fix arm64-specific rseq brokenness" (411c1cf43039) mended it in 7.1-rc3 and in
//! 7.0.14; 6.19 had ended.  Source: Mathias Stearn, linux-arm-kernel, 22 April 2026, with a test.
//! [`UNSOUND_RSEQ`] refuses these releases.
#![allow(unsafe_code, reason = "assembler: system calls, TLS words and critical sections")]

use core::arch::{asm, global_asm};
use core::ops::Range;

use super::{RSEQ_CPU_ID, Release};

mod abi;
mod cold;
mod hit;

pub(crate) use cold::{flip_own, pop_many, push_many};

/// What precedes an abort handler: `brk #0x45e0`, as glibc registers it.
pub(crate) const RSEQ_SIGNATURE: u32 = 0xd428_bc00;

/// Releases whose sections are not aborted when they should be.  The first two candidates of 7.1 are not
/// told from it; a distribution that mends an older release under its own number is refused.
pub(crate) const UNSOUND_RSEQ: Range<Release> = Release([6, 19, 0])..Release([7, 0, 14]);

/// Number of clone(2): there is no fork and no vfork.
pub const SYS_CLONE: i64 = libc::SYS_clone;
/// What `__vfork` takes for fork(2): clone's flags.
pub(crate) const SYS_FORK: i64 = libc::SIGCHLD as i64;
/// What `__vfork` takes for vfork(2): clone's flags.
pub(crate) const SYS_VFORK: i64 = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as i64;

// The thread's own words: initial-exec TLS, 64 bytes, so that a library loaded late still finds room.
global_asm!(
    ".pushsection .tdata,\"awT\",@progbits",
    ".balign 64",
    ".globl __homenode_thread_0_1",
    ".hidden __homenode_thread_0_1",
    ".type __homenode_thread_0_1,@object",
    ".size __homenode_thread_0_1,64",
    "__homenode_thread_0_1: .long 0, -1, 0, 0, 0, 0, 0, 0",
    ".zero 32",
    ".popsection",
);

/// The thread pointer: the thread's identity as long as it lives.
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the psABI keeps the thread pointer in this register.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    };
    pointer
}

/// Offset of this thread's [`super::ThreadBlock`] from its thread pointer, the same in every thread.
pub(crate) fn thread_block_offset() -> isize {
    let offset: isize;
    // SAFETY: reads the GOT entry that the dynamic linker filled for the symbol above.
    unsafe {
        asm!("adrp {0}, :gottprel:__homenode_thread_0_1", "ldr {0}, [{0}, :gottprel_lo12:__homenode_thread_0_1]",
             out(reg) offset, options(nostack, readonly, preserves_flags));
    }
    offset
}

/// Address of a symbol that may be missing: 0 then.
#[doc(hidden)]
#[macro_export]
macro_rules! __weak_symbol {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads a GOT entry; a weak symbol that nobody defines is null there.
        unsafe {
            core::arch::asm!(concat!(".weak ", $name, "\nadrp {0}, :got:", $name, "\nldr {0}, [{0}, :got_lo12:", $name, "]"),
                             out(reg) address, options(nostack, readonly, preserves_flags));
        }
        address
    }};
}

/// The `cpu_id` word of the rseq area at `offset` from the thread pointer.
pub(crate) fn cpu_id_at(offset: isize) -> i32 {
    let id: i32;
    // SAFETY: `offset` names libc's rseq area or our own, both at least 32 bytes long.
    unsafe {
        asm!("mrs {0:x}, tpidr_el0", "add {0:x}, {0:x}, {1}", "ldr {0:w}, [{0:x}, #{cpu}]", out(reg) id, in(reg) offset,
             cpu = const RSEQ_CPU_ID, options(nostack, readonly, preserves_flags));
    }
    id
}

/// A system call of up to six arguments; the kernel's own result, errors as small negative numbers.
///
/// # Safety
/// The call must be sound for what the program holds: the caller answers for its arguments.
pub(crate) unsafe fn syscall(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes x0 alone; what the call does is the caller's promise.
    unsafe {
        asm!("svc #0", in("x8") number, inlateout("x0") args[0] => result, in("x1") args[1], in("x2") args[2],
             in("x3") args[3], in("x4") args[4], in("x5") args[5], options(nostack));
    }
    result
}

const _: () = assert!(cfg!(target_endian = "little"), "the signature is another word there");
