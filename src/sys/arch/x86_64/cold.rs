//! The critical sections of the slow path.
#![allow(unsafe_code, reason = "assembler: critical sections")]

use core::arch::asm;

use crate::sys::arch::{HOT, SLAB_LIMITS_OFFSET};

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
            hot = sym HOT,
            limits = const SLAB_LIMITS_OFFSET,
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
            hot = sym HOT,
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
            hot = sym HOT,
            cpu = in(reg) cpu, old = in(reg) old, new = in(reg) new,
            s = out(reg) _, t = out(reg) _, k = out(reg) done,
            options(nostack),
        );
    }
    done != 0
}
