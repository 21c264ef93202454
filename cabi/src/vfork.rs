//! vfork: its child runs in the parent's memory as another process, with a stale CPU number, so that
//! critical sections do not protect it.  While one is open, every thread takes the slow path, which
//! knows the child; the kernel's own vfork still costs no page tables.
#![allow(unsafe_code, reason = "a function that returns twice is written in assembler")]

use core::arch::naked_asm;

/// vfork(2).  The return address is kept in a register, which each of the two processes has for
/// itself, since the child's calls overwrite the parent's stack.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn vfork() -> i32 {
    naked_asm!(
        "sub rsp, 8",
        "call {begin}",
        "add rsp, 8",
        "test al, al",
        "mov eax, {vfork}",
        "mov ecx, {fork}",
        "cmovz eax, ecx",
        "pop rdi",
        "mov esi, eax",
        "syscall",
        "push rdi",
        "test eax, eax",
        "jz 22f",
        // The parent, or an error.
        "cmp esi, {vfork}",
        "jne 33f",
        "push rax",
        "call {end}",
        "pop rax",
        "33: test eax, eax",
        "js 44f",
        "22: ret",
        "44: neg eax",
        "push rax",
        "mov edi, eax",
        "call {error}",
        "pop rcx",
        "mov eax, -1",
        "ret",
        begin = sym homenode_core::vfork_begin,
        end = sym homenode_core::vfork_end,
        error = sym fail,
        vfork = const libc::SYS_vfork,
        fork = const libc::SYS_fork,
    )
}

extern "C" fn fail(errno: i32) {
    crate::errno::set(errno);
}
