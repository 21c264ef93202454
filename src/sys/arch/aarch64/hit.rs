//! The hit paths, as bodies of naked functions: what [`super`] says of a section holds for each.
//!
//! Registers: arguments stay where they came, in x0 to x2, so that a miss is a plain jump; the class is in
//! x9, a length that outlives the section in x15; sections use x10 to x14 alone.  x16 and x17 are the
//! linker's (a branch that is too long goes through a piece of its own), x18 is the platform's.

/// Calls an `extern "C"` function of one or two arguments, directly; what it leaves in x0.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    ($function:path, $first:expr $(, $second:expr)?) => {{
        let result;
        core::arch::asm!("bl {}", sym $function, in("x0") $first, $(in("x1") $second,)?
                         lateout("x0") result, clobber_abi("C"));
        result
    }};
}

/// Body of a naked function: goes to `$function` with the same arguments; the stack is always aligned here.
#[doc(hidden)]
#[macro_export]
macro_rules! __on_aligned_stack {
    ($function:path) => {
        core::arch::naked_asm!(".cfi_startproc\nb {function}\n.cfi_endproc", function = sym $function)
    };
}

/// Opens a critical section: its descriptor, the store that announces it (A3), and its slab in x10.
/// The restart label is 22; a rseq offset of zero leaves for label 99.  x11 is zero by an `eor` of the
/// offset with itself: so the table's address depends on the offset (A2).
#[doc(hidden)]
#[macro_export]
macro_rules! __section_open {
    () => {
        ".pushsection __rseq_cs,\"aw\",@progbits\n.balign 32\n77: .long 0, 0\n.quad 33f, 55f - 33f, 44f\n.popsection\n\
         22: adrp x10, {hot}\nadd x10, x10, :lo12:{hot}\nldr x11, [x10, #8]\ncbz x11, 99f\n\
         mrs x12, tpidr_el0\nadd x12, x12, x11\neor x11, x11, x11\nadrp x13, 77b\nadd x13, x13, :lo12:77b\n\
         str x13, [x12, #8]\n33: ldrsw x12, [x12, #4]\nldr x10, [x10, x11]\nldr x10, [x10, x12, lsl #3]\n"
    };
}

/// The abort handler of the section before it, which the kernel knows by the signature in front.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_abort {
    () => {
        ".inst 0xd428bc00\n44: b 22b\n"
    };
}

/// Finds the class of the size in `$size`, up to the table's last, in x9; `$up` is 7, or 8 where the register
/// holds one byte less.
#[doc(hidden)]
#[macro_export]
macro_rules! __class_by_table {
    ($size:literal, $up:literal) => {
        concat!(
            "add x9, ",
            $size,
            ", #",
            $up,
            "\nlsr x9, x9, #3\nadrp x10, {table}\nadd x10, x10, :lo12:{table}\nldrb w9, [x10, x9]\n"
        )
    };
}

/// Finds the class of a size above the table's last, of which x9 holds one byte less, in x9.
#[doc(hidden)]
#[macro_export]
macro_rules! __class_by_formula {
    () => {
        "clz w10, w9\nmov w11, #28\nsub w10, w11, w10\nlsr w9, w9, w10\nadd w9, w9, w10, lsl #3\n\
         sub w9, w9, #{bias}\n"
    };
}

/// Pops the top object of the class in register `$class` from slab x10 into x13, and ends the section
/// (label 55); 99 when there is none.  The next object is fetched meanwhile, since whoever gets it writes to
/// it; a fetch of the null word's address does nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_take {
    ($class:literal) => {
        concat!(
            "add x11, x10, ",
            $class,
            ", lsl #3\nldr x12, [x11]\nldr x13, [x12, #-8]!\ncbz x13, 99f\nldur x14, [x12, #-8]\n\
             prfm pstl1keep, [x14]\nstr x12, [x11]\n55:\n",
        )
    };
}

/// [`__section_take`], and returns.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_pop {
    ($class:literal) => {
        concat!($crate::__section_take!($class), "mov x0, x13\nret\n")
    };
}

/// Finds the class byte of the object in x0, in slab x10: it is at x11 + x12; `$away` for an object that is
/// not of this CPU's node.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_find {
    ($away:literal) => {
        concat!(
            "ldr x11, [x10, #{base}]\nldr x13, [x10, #{runs}]\nsub x12, x0, x11\nlsr x12, x12, #{run_shift}\n\
             cmp x12, x13\nb.hs ",
            $away,
            "\n",
        )
    };
}

/// Finds the stack of objects that go home, in slab x10, for the object in x0 of another node: its address
/// goes to x11.  99 for memory that is not ours, and for an object that goes home by itself: a large one.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_find_away {
    () => {
        "ldr x14, [x10, #{region}]\nldr x13, [x10, #{region} + 8]\nsub x12, x0, x14\ncmp x12, x13\nb.hs 99f\n\
         ldr x13, [x10, #{region} + 16]\nlsr x11, x12, x13\nlsl x13, x11, x13\nadd x11, x10, x11, lsl #3\n\
         add x11, x11, #{remote}\nsub x12, x12, x13\nadd x14, x14, x13\nlsr x12, x12, #{run_shift}\n\
         ldrb w12, [x14, x12]\nsub w12, w12, #1\ncmp w12, #{remote_classes}\nb.hs 99f\n"
    };
}

/// Pushes the object in x0 on the stack whose top is at x11 and returns; 99 when it is full.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_push {
    () => {
        "ldr x12, [x11]\nldr x13, [x11, #{limits}]\ncmp x12, x13\nb.hs 99f\nstr x0, [x12], #8\nstr x12, [x11]\n\
         55: ret\n"
    };
}

/// Pushes the object in x0, whose class byte should be `$class`, in slab x10; 88 when it is another, or the
/// object is not of this CPU's node.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_push_expected {
    ($class:literal) => {
        concat!(
            $crate::__section_find!("88f"),
            "ldrb w12, [x11, x12]\ncmp w12, w",
            $class,
            "\nb.ne 88f\nadd x11, x10, x",
            $class,
            ", lsl #3\n",
            $crate::__section_push!(),
        )
    };
}

/// Body of a naked `fn(size) -> object`: the hit path of malloc.  A miss tail-jumps to `$slow`
/// with the size still in x0.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __alloc_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\ncmp x0, #{table_max}\nb.hi 66f\n",
                $crate::__class_by_table!("x0", "7"),
                $crate::__section_open!(),
                $crate::__section_pop!("x9"),
                "66: cmp x0, #{class_max}\nb.hi 99f\nsub x9, x0, #1\n",
                $crate::__class_by_formula!(),
                "b 22b\n99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            table = sym $crate::seam::TABLE,
            table_max = const $crate::seam::TABLE_MAX,
            class_max = const $crate::seam::CLASS_BYTES_MAX,
            bias = const $crate::seam::GEOMETRIC_BIAS,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn(count, size) -> zeroed object`: the hit path of calloc, which leaves for libc's
/// memset.  A miss, and more than [`TABLE_MAX`](crate::seam::TABLE_MAX) bytes, tail-jump to `$slow` with
/// the arguments as they came.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call but memset.
#[doc(hidden)]
#[macro_export]
macro_rules! __zeroed_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\numulh x10, x0, x1\nmul x15, x0, x1\ncbnz x10, 99f\n\
                 cmp x15, #{table_max}\nb.hi 99f\n",
                $crate::__class_by_table!("x15", "7"),
                $crate::__section_open!(),
                $crate::__section_take!("x9"),
                "mov x0, x13\nmov w1, #0\nmov x2, x15\nadrp x16, :got:memset\nldr x16, [x16, :got_lo12:memset]\n\
                 br x16\n99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            table = sym $crate::seam::TABLE,
            table_max = const $crate::seam::TABLE_MAX,
            slow = sym $slow,
        )
    };
}

/// Code of the hit path of an aligned request: `$align` and `$size` name the registers of the arguments;
/// `$begin` may leave for label 99, and `$end` returns x13.  The class of a size rounded up to the alignment
/// keeps it, up to that of a run.  Misses tail-jump to `$slow`: an alignment that is no power of two, or of
/// a run and more; no bytes, or too many after rounding.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __aligned_hit {
    ($slow:path, $align:literal, $size:literal, $begin:literal, $end:literal) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $begin,
                "sub x10, ", $align, ", #1\ntst x10, ", $align, "\nb.ne 99f\n\
                 sub x9, ", $size, ", #1\norr x9, x9, x10\ncmp x9, #{table_max}\nb.hs 66f\n",
                $crate::__class_by_table!("x9", "8"),
                $crate::__section_open!(),
                $crate::__section_take!("x9"),
                $end,
                "\n66: cmp x9, #{class_max}\nb.hs 99f\ncmp ", $align, ", #{run}\nb.hs 99f\n",
                $crate::__class_by_formula!(),
                "b 22b\n99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            table = sym $crate::seam::TABLE,
            table_max = const $crate::seam::TABLE_MAX,
            class_max = const $crate::seam::CLASS_BYTES_MAX,
            bias = const $crate::seam::GEOMETRIC_BIAS,
            run = const 1 << $crate::seam::RUN_SHIFT,
            slow = sym $slow,
        )
    };
}

/// [`__aligned_hit`] of a `fn(align, size) -> object`.
#[doc(hidden)]
#[macro_export]
macro_rules! __aligned_alloc_hit {
    ($slow:path) => {
        $crate::__aligned_hit!($slow, "x0", "x1", "", "mov x0, x13\nret")
    };
}

/// [`__aligned_hit`] of a `fn(out, align, size) -> 0`, which writes the object's address to `out`; an
/// alignment that is no multiple of 8 misses.
#[doc(hidden)]
#[macro_export]
macro_rules! __posix_memalign_hit {
    ($slow:path) => {
        $crate::__aligned_hit!(
            $slow,
            "x1",
            "x2",
            "tst x1, #7\nb.ne 99f\n",
            "str x13, [x0]\nmov w0, #0\nret"
        )
    };
}

/// Body of a naked `fn(class) -> object`: the hit path of an allocation whose class the caller knows.
/// A miss tail-jumps to `$slow` with the class still in x0.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __alloc_class_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $crate::__section_open!(),
                $crate::__section_pop!("x0"),
                "99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn(object)`: the hit path of free.  A miss tail-jumps to `$slow` with the
/// object still in x0.  The look-up of the class byte starts from the slice of the CPU's own
/// node, so its range check is the locality check.  An object of another node has a section of its own,
/// since a section can have but one last store.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $crate::__section_open!(),
                $crate::__section_find!("97f"),
                "ldrb w11, [x11, x12]\nadd x11, x10, x11, lsl #3\n",
                $crate::__section_push!(),
                "99: b {slow}\n",
                $crate::__section_abort!(),
                "97:\n",
                $crate::__section_open!(),
                $crate::__section_find_away!(),
                $crate::__section_push!(),
                "99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            base = const $crate::seam::SLAB_BASE_OFFSET,
            runs = const $crate::seam::SLAB_RUNS_OFFSET,
            limits = const $crate::seam::SLAB_LIMITS_OFFSET,
            run_shift = const $crate::seam::RUN_SHIFT,
            region = const $crate::seam::SLAB_REGION_OFFSET,
            remote = const $crate::seam::SLAB_REMOTE_OFFSET,
            remote_classes = const $crate::seam::REMOTE_CLASSES,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn(object, class)`: the hit path of a free whose class the caller expects.  The class
/// byte is read all the same, but as a branch: the stack's address does not wait for it.  Another byte
/// than the expected one is no fault (the block was shrunk in place): `$free` takes the object, by the
/// byte.  Other misses tail-jump to `$slow`; both with the object still in x0.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_class_hit {
    ($free:path, $slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $crate::__section_open!(),
                $crate::__section_push_expected!("1"),
                "88: b {free}\n99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            base = const $crate::seam::SLAB_BASE_OFFSET,
            runs = const $crate::seam::SLAB_RUNS_OFFSET,
            limits = const $crate::seam::SLAB_LIMITS_OFFSET,
            run_shift = const $crate::seam::RUN_SHIFT,
            free = sym $free,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn(object, size)`, or of one that has the size in its third argument, and brings it to x1: as
/// `__free_class_hit`, for the class that malloc takes for that size.  Sizes above the table's go to
/// `$free` at once; so do C++ deletes with a wrong size, which are common.  Both targets find the size in x1.
///
/// Budget: no exclusive or atomic instruction, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_sized_hit {
    (second, $free:path, $slow:path) => {
        $crate::__free_sized_hit!("", $free, $slow)
    };
    (third, $free:path, $slow:path) => {
        $crate::__free_sized_hit!("mov x1, x2\n", $free, $slow)
    };
    ($begin:literal, $free:path, $slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n", $begin, "cmp x1, #{table_max}\nb.hi 88f\n",
                $crate::__class_by_table!("x1", "7"),
                $crate::__section_open!(),
                $crate::__section_push_expected!("9"),
                "88: b {free}\n99: b {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            table = sym $crate::seam::TABLE,
            table_max = const $crate::seam::TABLE_MAX,
            base = const $crate::seam::SLAB_BASE_OFFSET,
            runs = const $crate::seam::SLAB_RUNS_OFFSET,
            limits = const $crate::seam::SLAB_LIMITS_OFFSET,
            run_shift = const $crate::seam::RUN_SHIFT,
            free = sym $free,
            slow = sym $slow,
        )
    };
}
