//! x86-64 Linux: system calls, thread-local words, symbols that may be missing; the critical sections
//! of the hit paths ([`hit`]) and of the slow paths (`cold`), and what C and C++ need ([`abi`]).
#![allow(unsafe_code, reason = "assembler: system calls, TLS words and critical sections")]

use core::arch::{asm, global_asm};
use core::ops::Range;

use super::{RSEQ_CPU_ID, Release};

mod abi;
mod cold;
mod hit;

pub(crate) use cold::{flip_own, pop_many, push_many};

/// What precedes an abort handler: `ud1` with the signature as operand, as glibc registers it.
pub(crate) const RSEQ_SIGNATURE: u32 = 0x5305_3053;

/// Releases whose sections are not aborted when they should be: none is known.
pub(crate) const UNSOUND_RSEQ: Range<Release> = Release([0; 3])..Release([0; 3]);

/// What `__vfork` takes for fork(2): its number.
pub(crate) const SYS_FORK: i64 = libc::SYS_fork;
/// What `__vfork` takes for vfork(2): its number.
pub(crate) const SYS_VFORK: i64 = libc::SYS_vfork;

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
    // SAFETY: the psABI keeps the thread pointer's own value at fs:0.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags))
    };
    pointer
}

/// Offset of this thread's [`super::ThreadBlock`] from its thread pointer, the same in every thread.
pub(crate) fn thread_block_offset() -> isize {
    let offset: isize;
    // SAFETY: reads the GOT entry that the dynamic linker filled for the symbol above.
    unsafe {
        asm!("mov {}, qword ptr [rip + __homenode_thread_0_1@GOTTPOFF]", out(reg) offset,
             options(nostack, readonly, preserves_flags));
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
            core::arch::asm!(concat!(".weak ", $name, "\nmov {}, qword ptr [rip + ", $name, "@GOTPCREL]"), out(reg) address,
                             options(nostack, readonly, preserves_flags));
        }
        address
    }};
}

/// The `cpu_id` word of the rseq area at `offset` from the thread pointer.
pub(crate) fn cpu_id_at(offset: isize) -> i32 {
    let id: i32;
    // SAFETY: `offset` names libc's rseq area or our own, both at least 32 bytes long.
    unsafe {
        asm!("mov {0:e}, dword ptr fs:[{1} + {cpu}]", out(reg) id, in(reg) offset, cpu = const RSEQ_CPU_ID,
             options(nostack, readonly, preserves_flags));
    }
    id
}

/// A system call of up to six arguments; the kernel's own result, errors as small negative numbers.
///
/// # Safety
/// The call must be sound for what the program holds: the caller answers for its arguments.
#[expect(clippy::cast_possible_truncation, reason = "call numbers are small")]
pub(crate) unsafe fn syscall(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel clobbers rcx and r11 alone; what the call does is the caller's promise.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") args[0], in("rsi") args[1],
             in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
             out("rcx") _, out("r11") _, options(nostack));
    }
    result
}
