//! The critical sections of the slow path.
#![allow(unsafe_code, reason = "assembler: critical sections")]

use core::arch::asm;

use crate::sys::arch::{HOT, SLAB_LIMITS_OFFSET};

/// Opens a section of the slow path: as `__section_open`, but by the offset that vfork leaves
/// alone, with operands {s}, {t} and {v}; {s} becomes the CPU's number, {t} the table.  Restart label 22,
/// label 88 on a CPU that is not {cpu}.  Callers have started the allocator: they see the table.
macro_rules! cold_section {
    () => {
        ".pushsection __rseq_cs,\"aw\",@progbits\n.balign 32\n77: .long 0, 0\n.quad 33f, 55f - 33f, 44f\n.popsection\n\
         b 22f\n.inst 0xd428bc00\n44:\n22: mov {k}, xzr\nadrp {t}, {hot}\nadd {t}, {t}, :lo12:{hot}\n\
         ldr {s}, [{t}, #16]\nmrs {v}, tpidr_el0\nadd {s}, {s}, {v}\nadrp {v}, 77b\nadd {v}, {v}, :lo12:77b\n\
         str {v}, [{s}, #8]\n33: ldr {s:w}, [{s}, #4]\ncmp {s:w}, {cpu:w}\nb.ne 88f\nldr {t}, [{t}]\n"
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
                "ldr {s}, [{t}, {s}, lsl #3]\nadd {s}, {s}, {index}, lsl #3\nldr {t}, [{s}]\n\
                 ldr {k}, [{s}, #{limits}]\nsub {k}, {k}, {t}\nlsr {k}, {k}, #3\ncmp {k}, {len}\n\
                 csel {k}, {len}, {k}, hi\ncbz {k}, 88f\nmov {i}, xzr\n\
                 66: ldr {v}, [{from}, {i}, lsl #3]\nstr {v}, [{t}, {i}, lsl #3]\nadd {i}, {i}, #1\ncmp {i}, {k}\n\
                 b.lo 66b\nadd {t}, {t}, {k}, lsl #3\nstr {t}, [{s}]\n55:\n88:",
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
                "ldr {s}, [{t}, {s}, lsl #3]\nadd {s}, {s}, {index}, lsl #3\nldr {t}, [{s}]\n\
                 66: cmp {k}, {len}\nb.hs 67f\nldur {v}, [{t}, #-8]\ncbz {v}, 67f\n\
                 str {v}, [{to}, {k}, lsl #3]\nsub {t}, {t}, #8\nadd {k}, {k}, #1\nb 66b\n\
                 67: cbz {k}, 88f\nstr {t}, [{s}]\n55:\n88:",
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
                "add {s}, {t}, {s}, lsl #3\nldr {t}, [{s}]\ncmp {t}, {old}\nb.ne 88f\nmov {k}, #1\n\
                 str {new}, [{s}]\n55:\n88:",
            ),
            hot = sym HOT,
            cpu = in(reg) cpu, old = in(reg) old, new = in(reg) new,
            s = out(reg) _, t = out(reg) _, v = out(reg) _, k = out(reg) done,
            options(nostack),
        );
    }
    done != 0
}
