//! x86-64 Linux: system calls, thread-local words and the rseq critical sections.
//!
//! A critical section announces itself by storing its descriptor in the thread's rseq area, reads
//! the CPU it runs on, and ends in one store.  When the kernel preempts it, moves it or delivers a
//! signal before that store, the thread resumes at the abort handler, which starts it again: so
//! nothing of a section is seen but its last store (rseq(2); tcmalloc, docs/rseq.md).
//!
//! Every section finds its slab the same way: `HOT.table[cpu_id]`.  Unregistered threads read
//! `cpu_id` -1 or -2 there, where the table holds the slab that always misses.
#![allow(unsafe_code, reason = "assembler: system calls, TLS words and critical sections")]

use core::arch::{asm, global_asm};

use super::{Hot, RSEQ_CPU_ID, ThreadBlock};

/// What precedes an abort handler: `ud1` with the signature as operand, as glibc registers it.
pub(crate) const RSEQ_SIGNATURE: u32 = 0x5305_3053;

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
    ".weak __rseq_offset",
    ".weak __rseq_size",
    ".weak environ",
);

/// The thread pointer: the thread's identity as long as it lives.
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the psABI keeps the thread pointer's own value at fs:0.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

/// Offset of this thread's [`ThreadBlock`] from its thread pointer, the same in every thread.
pub(crate) fn thread_block_offset() -> isize {
    let offset: isize;
    // SAFETY: reads the GOT entry that the dynamic linker filled for the symbol above.
    unsafe {
        asm!("mov {}, qword ptr [rip + __homenode_thread_0_1@GOTTPOFF]", out(reg) offset,
             options(nostack, readonly, preserves_flags));
    }
    offset
}

/// This thread's own words.
pub(crate) fn thread_block() -> &'static ThreadBlock {
    let address = thread_pointer().wrapping_add_signed(thread_block_offset());
    // SAFETY: the block is this thread's TLS, of this type, and all its fields are atomics; no
    // caller keeps the reference past the call it serves, so it dies before the thread does.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

/// Address of a symbol that may be missing: 0 then.  It must be declared weak.
macro_rules! weak_symbol {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads a GOT entry; a weak symbol that nobody defines is null there.
        unsafe {
            core::arch::asm!(concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"), out(reg) address,
                             options(nostack, readonly, preserves_flags));
        }
        address
    }};
}
#[cfg(feature = "stay-loaded")]
pub(crate) use weak_symbol;

/// What libc says of its rseq registration: offset and size; none where libc has no such symbols.
pub(crate) fn libc_rseq() -> Option<(isize, u32)> {
    let offset: *const isize = core::ptr::with_exposed_provenance(weak_symbol!("__rseq_offset"));
    let size: *const u32 = core::ptr::with_exposed_provenance(weak_symbol!("__rseq_size"));
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
    let slot: *const *const *const u8 = core::ptr::with_exposed_provenance(weak_symbol!("environ"));
    if slot.is_null() {
        return core::ptr::null();
    }
    // SAFETY: libc defines `environ` as a pointer of this type.
    unsafe { *slot }
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

/// Opens a critical section: its descriptor, its abort handler, and the store that announces it.
/// The restart label is 22; rdx holds the rseq offset, and zero there leaves for label 99.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_open {
    () => {
        ".pushsection __rseq_cs,\"aw\",@progbits\n.balign 32\n77: .long 0, 0\n.quad 33f, 55f - 33f, 44f\n.popsection\n\
         .pushsection .text.unlikely,\"ax\",@progbits\n.byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n44: jmp 22f\n.popsection\n\
         22: mov rdx, qword ptr [rip + {hot} + 8]\ntest rdx, rdx\njz 99f\nlea rcx, [rip + 77b]\n\
         mov qword ptr fs:[rdx + 8], rcx\n33: movsxd rcx, dword ptr fs:[rdx + 4]\n\
         mov rdx, qword ptr [rip + {hot}]\nmov rcx, qword ptr [rdx + rcx*8]\n"
    };
}

/// Pops the top object of class rsi from slab rcx into rax and returns; 99 when there is none.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_pop {
    () => {
        "lea r8, [rcx + rsi*8]\nmov rdx, qword ptr [r8]\nmov rax, qword ptr [rdx - 8]\ntest rax, rax\njz 99f\n\
         sub rdx, 8\nmov qword ptr [r8], rdx\n55: ret\n"
    };
}

/// Body of a naked `fn(size) -> object`: the hit path of malloc.  A miss tail-jumps to `$slow`
/// with the size still in rdi.
///
/// Budget: no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __alloc_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                "cmp rdi, {table_max}\nja 66f\nlea esi, [rdi + 7]\nshr esi, 3\nlea rax, [rip + {table}]\n\
                 movzx esi, byte ptr [rax + rsi]\n",
                $crate::__section_open!(),
                $crate::__section_pop!(),
                "66: cmp rdi, {class_max}\nja 99f\nlea eax, [rdi - 1]\nbsr ecx, eax\nsub ecx, 3\nshr eax, cl\n\
                 lea esi, [rax + rcx*8 - 30]\njmp 22b\n99: jmp {slow}\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            table = sym $crate::seam::TABLE,
            table_max = const $crate::seam::TABLE_MAX,
            class_max = const $crate::seam::CLASS_BYTES_MAX,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn() -> object`: the hit path for one class, a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! __class_hit {
    ($class:expr, $slow:path) => {
        core::arch::naked_asm!(
            concat!(
                "mov esi, {class}\n",
                $crate::__section_open!(),
                $crate::__section_pop!(),
                "99: jmp {slow}\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            class = const $class,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn(object)`: the hit path of free.  A miss tail-jumps to `$slow` with the
/// object still in rdi.  The look-up of the class byte starts from the slice of the CPU's own
/// node, so its range check is the locality check.
///
/// Budget: no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                $crate::__section_open!(),
                "mov rax, qword ptr [rcx + {base}]\nmov rsi, rdi\nsub rsi, rax\nshr rsi, {run_shift}\n\
                 cmp rsi, qword ptr [rcx + {runs}]\njae 99f\nmovzx esi, byte ptr [rax + rsi]\n\
                 lea r8, [rcx + rsi*8]\nmov rdx, qword ptr [r8]\ncmp rdx, qword ptr [r8 + {limits}]\njae 99f\n\
                 mov qword ptr [rdx], rdi\nadd rdx, 8\nmov qword ptr [r8], rdx\n55: ret\n99: jmp {slow}\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            base = const $crate::seam::SLAB_BASE_OFFSET,
            runs = const $crate::seam::SLAB_RUNS_OFFSET,
            limits = const $crate::seam::SLAB_LIMITS_OFFSET,
            run_shift = const $crate::seam::RUN_SHIFT,
            slow = sym $slow,
        )
    };
}

/// Opens a section of the slow path: as `__section_open`, but by the offset that vfork leaves
/// alone, with operands {t} and {s}; {s} becomes the CPU's number.  Restart label 22, label 88 on a
/// CPU that is not {cpu}.
macro_rules! cold_section {
    () => {
        ".pushsection __rseq_cs,\"aw\",@progbits\n.balign 32\n77: .long 0, 0\n.quad 33f, 55f - 33f, 44f\n.popsection\n\
         .pushsection .text.unlikely,\"ax\",@progbits\n.byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n44: jmp 22f\n.popsection\n\
         22: xor {k:e}, {k:e}\nmov {t}, qword ptr [rip + {hot} + 16]\nlea {s}, [rip + 77b]\n\
         mov qword ptr fs:[{t} + 8], {s}\n33: mov {s:e}, dword ptr fs:[{t} + 4]\ncmp {s:e}, {cpu:e}\njne 88f\n\
         mov {t}, qword ptr [rip + {hot}]\n"
    };
}

/// Pushes objects on stack `index` of `cpu`'s slab, as many as it has room for, in one section;
/// none when the thread runs elsewhere.  Returns how many.
///
/// # Safety
/// rseq is known (`HOT.cold_rseq_offset` is set), and the caller owns the objects.
pub(crate) unsafe fn push_many(cpu: u32, index: usize, objects: &[usize]) -> usize {
    let pushed: usize;
    // SAFETY: slots between top and limit belong to the section that commits; `objects` is read in bounds.
    unsafe {
        asm!(
            concat!(
                cold_section!(),
                "mov {s}, qword ptr [{t} + {s}*8]\nmov {t}, qword ptr [{s} + {index}*8]\n\
                 mov {k}, qword ptr [{s} + {index}*8 + {limits}]\nsub {k}, {t}\nshr {k}, 3\ncmp {k}, {len}\n\
                 cmova {k}, {len}\ntest {k}, {k}\njz 88f\nxor {i:e}, {i:e}\n\
                 66: mov {v}, qword ptr [{from} + {i}*8]\nmov qword ptr [{t} + {i}*8], {v}\ninc {i}\ncmp {i}, {k}\n\
                 jb 66b\nlea {t}, [{t} + {k}*8]\nmov qword ptr [{s} + {index}*8], {t}\n55:\n88:",
            ),
            hot = sym super::HOT,
            limits = const super::SLAB_LIMITS_OFFSET,
            cpu = in(reg) cpu, index = in(reg) index, from = in(reg) objects.as_ptr(), len = in(reg) objects.len(),
            s = out(reg) _, t = out(reg) _, i = out(reg) _, v = out(reg) _, k = out(reg) pushed,
            options(nostack),
        );
    }
    pushed
}

/// Pops up to `objects.len()` objects from stack `index` of `cpu`'s slab in one section; none when
/// the thread runs elsewhere.  Returns how many.
///
/// # Safety
/// As [`push_many`]; the popped objects are the caller's.
pub(crate) unsafe fn pop_many(cpu: u32, index: usize, objects: &mut [usize]) -> usize {
    let popped: usize;
    // SAFETY: slots below top belong to the section that commits; `objects` is written in bounds.
    unsafe {
        asm!(
            concat!(
                cold_section!(),
                "mov {s}, qword ptr [{t} + {s}*8]\nmov {t}, qword ptr [{s} + {index}*8]\n\
                 66: cmp {k}, {len}\njae 67f\nmov {v}, qword ptr [{t} - 8]\ntest {v}, {v}\njz 67f\n\
                 mov qword ptr [{to} + {k}*8], {v}\nsub {t}, 8\ninc {k}\njmp 66b\n\
                 67: test {k}, {k}\njz 88f\nmov qword ptr [{s} + {index}*8], {t}\n55:\n88:",
            ),
            hot = sym super::HOT,
            cpu = in(reg) cpu, index = in(reg) index, to = in(reg) objects.as_mut_ptr(), len = in(reg) objects.len(),
            s = out(reg) _, t = out(reg) _, v = out(reg) _, k = out(reg) popped,
            options(nostack),
        );
    }
    popped
}

/// Makes `new` the slab of `cpu`, in a section on that CPU, if `old` is its slab now.  True: every
/// section that used `old` on that CPU has ended, and none will use it again.
///
/// # Safety
/// rseq is known, the caller holds the CPU's flip lock, and `new` is a slab that lives on.
pub(crate) unsafe fn flip_own(cpu: u32, old: usize, new: usize) -> bool {
    let done: usize;
    // SAFETY: the table has an entry for each CPU that the kernel can name, and only the holder of
    // the flip lock writes it.
    unsafe {
        asm!(
            concat!(
                cold_section!(),
                "cmp qword ptr [{t} + {s}*8], {old}\njne 88f\ninc {k:e}\nmov qword ptr [{t} + {s}*8], {new}\n55:\n88:",
            ),
            hot = sym super::HOT,
            cpu = in(reg) cpu, old = in(reg) old, new = in(reg) new,
            s = out(reg) _, t = out(reg) _, k = out(reg) done,
            options(nostack),
        );
    }
    done != 0
}

const _: () = assert!(core::mem::offset_of!(Hot, table) == 0);
const _: () = assert!(core::mem::offset_of!(Hot, rseq_offset) == 8);
const _: () = assert!(core::mem::offset_of!(Hot, cold_rseq_offset) == 16);
const _: () = assert!(RSEQ_CPU_ID == 4);
