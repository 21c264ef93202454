//! The hit paths, as bodies of naked functions.
//!
//! A critical section announces itself by storing its descriptor in the thread's rseq area, reads
//! the CPU it runs on, and ends in one store.  When the kernel preempts it, moves it or delivers a
//! signal before that store, the thread resumes at the abort handler, which starts it again: so
//! nothing of a section is seen but its last store (rseq(2); tcmalloc, docs/rseq.md).
//!
//! Every section finds its slab the same way: `HOT.table[cpu_id]`.  Unregistered threads read
//! `cpu_id` -1 or -2 there, where the table holds the slab that always misses.

/// Calls an `extern "C"` function of one or two arguments, directly; what it leaves in rax.  The function
/// must do with any alignment of the stack: in a function that calls nothing else, the compiler aligns it for
/// an `asm!` only sometimes (seen with Rust 1.95).
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    ($function:path, $first:expr $(, $second:expr)?) => {{
        let result;
        core::arch::asm!("call {}", sym $function, in("rdi") $first, $(in("rsi") $second,)?
                         lateout("rax") result, clobber_abi("C"));
        result
    }};
}

/// Body of a naked function: calls `$function` with the same arguments, on an aligned stack.
#[doc(hidden)]
#[macro_export]
macro_rules! __on_aligned_stack {
    ($function:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc\npush rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\nmov rbp, rsp\n\
             .cfi_def_cfa_register rbp\nand rsp, -16\ncall {function}\nleave\n.cfi_def_cfa rsp, 8\nret\n.cfi_endproc",
            function = sym $function,
        )
    };
}

/// Opens a critical section: its descriptor, and the store that announces it.
/// The restart label is 22; rdx holds the rseq offset, and zero there leaves for label 99.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_open {
    () => {
        ".pushsection __rseq_cs,\"aw\",@progbits\n.balign 32\n77: .long 0, 0\n.quad 33f, 55f - 33f, 44f\n.popsection\n\
         22: mov rdx, qword ptr [rip + {hot} + 8]\ntest rdx, rdx\njz 99f\nlea rcx, [rip + 77b]\n\
         mov qword ptr fs:[rdx + 8], rcx\n33: movsxd rcx, dword ptr fs:[rdx + 4]\n\
         mov rdx, qword ptr [rip + {hot}]\nmov rcx, qword ptr [rdx + rcx*8]\n"
    };
}

/// The abort handler of the section before it, which the kernel knows by the signature in front.  It stands in
/// the function, so that the function's frame is described for it, too: a signal that comes inside a section is
/// delivered here.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_abort {
    () => {
        ".byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n44: jmp 22b\n"
    };
}

/// Pops the top object of the class in register `$class` from slab rcx into rax, and ends the section
/// (label 55); 99 when there is none.  The next object is fetched meanwhile, since whoever gets it writes to it: a thousand
/// objects allocated and freed cost a fifth less.  A fetch of the null word's address does nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_take {
    ($class:literal) => {
        concat!(
            "lea r8, [rcx + ",
            $class,
            "*8]\nmov rdx, qword ptr [r8]\nmov rax, qword ptr [rdx - 8]\ntest rax, rax\njz 99f\n\
             mov rcx, qword ptr [rdx - 16]\nprefetchw byte ptr [rcx]\n\
             sub rdx, 8\nmov qword ptr [r8], rdx\n55:\n",
        )
    };
}

/// [`__section_take`], and returns.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_pop {
    ($class:literal) => {
        concat!($crate::__section_take!($class), "ret\n")
    };
}

/// Finds the class byte of the object in rdi, in slab rcx: it is at rax + `$run`; `$away` for an object
/// that is not of this CPU's node.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_find {
    ($run:literal, $away:literal) => {
        concat!(
            "mov rax, qword ptr [rcx + {base}]\nmov ",
            $run,
            ", rdi\nsub ",
            $run,
            ", rax\nshr ",
            $run,
            ", {run_shift}\ncmp ",
            $run,
            ", qword ptr [rcx + {runs}]\njae ",
            $away,
            "\n",
        )
    };
}

/// Finds the stack of objects that go home, in slab rcx, for the object in rdi of another node: its address
/// goes to r8.  99 for memory that is not ours, and for an object that goes home by itself: a large one.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_find_away {
    () => {
        "mov r9, rcx\nmov rax, rdi\nsub rax, qword ptr [r9 + {region}]\ncmp rax, qword ptr [r9 + {region} + 8]\n\
         jae 99f\nmov ecx, dword ptr [r9 + {region} + 16]\nmov rdx, rax\nshr rdx, cl\n\
         lea r8, [r9 + rdx*8 + {remote}]\nshl rdx, cl\nsub rax, rdx\nadd rdx, qword ptr [r9 + {region}]\n\
         shr rax, {run_shift}\nmovzx eax, byte ptr [rdx + rax]\ndec eax\ncmp eax, {remote_classes}\njae 99f\n"
    };
}

/// Pushes the object in rdi on the stack whose top is at r8 and returns; 99 when it is full.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_push {
    () => {
        "mov rdx, qword ptr [r8]\ncmp rdx, qword ptr [r8 + {limits}]\njae 99f\n\
         mov qword ptr [rdx], rdi\nadd rdx, 8\nmov qword ptr [r8], rdx\n55: ret\n"
    };
}

/// Pushes the object in rdi, whose class byte should be `$class` (`$byte` is its low byte), in slab rcx; 88
/// when it is another, or the object is not of this CPU's node.
#[doc(hidden)]
#[macro_export]
macro_rules! __section_push_expected {
    ($class:literal, $byte:literal) => {
        concat!(
            $crate::__section_find!("rdx", "88f"),
            "cmp byte ptr [rax + rdx], ",
            $byte,
            "\njne 88f\nlea r8, [rcx + ",
            $class,
            "*8]\n",
            $crate::__section_push!(),
        )
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
                ".cfi_startproc\n",
                "cmp rdi, {table_max}\nja 66f\nlea esi, [rdi + 7]\nshr esi, 3\nlea rax, [rip + {table}]\n\
                 movzx esi, byte ptr [rax + rsi]\n",
                $crate::__section_open!(),
                $crate::__section_pop!("rsi"),
                "66: cmp rdi, {class_max}\nja 99f\nlea eax, [rdi - 1]\nbsr ecx, eax\nsub ecx, 3\nshr eax, cl\n\
                 lea esi, [rax + rcx*8 - {bias}]\njmp 22b\n99: jmp {slow}\n",
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
/// Budget: no atomic read-modify-write, no lock, no system call, no call but memset.
#[doc(hidden)]
#[macro_export]
macro_rules! __zeroed_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                "mov rax, rsi\nmul rdi\njo 99f\ncmp rax, {table_max}\nja 99f\nmov r9, rax\n\
                 lea r10d, [rax + 7]\nshr r10d, 3\nlea rax, [rip + {table}]\nmovzx r10d, byte ptr [rax + r10]\n",
                $crate::__section_open!(),
                $crate::__section_take!("r10"),
                "mov rdi, rax\nxor esi, esi\nmov rdx, r9\njmp qword ptr [rip + memset@GOTPCREL]\n\
                 99: jmp {slow}\n",
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
/// `$begin` may leave for label 99, `$end` returns rax, and `$miss` brings back arguments that the section
/// used (rcx and rdx) before the tail-jump to `$slow`.  The class of a size rounded up to the
/// alignment keeps it, up to that of a run.  Misses: an alignment that is no power of two, or of a run and
/// more; no bytes, or too many after rounding.
///
/// Budget: no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __aligned_hit {
    ($slow:path, $align:literal, $size:literal, $begin:literal, $end:literal, $miss:literal) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $begin,
                "\nlea rax, [", $align, " - 1]\ntest rax, ", $align, "\njnz 99f\n\
                 lea r9, [", $size, " - 1]\nor r9, rax\ncmp r9, {table_max} - 1\nja 66f\n\
                 add r9d, 8\nshr r9d, 3\nlea rax, [rip + {table}]\nmovzx r9d, byte ptr [rax + r9]\n",
                $crate::__section_open!(),
                $crate::__section_take!("r9"),
                $end,
                "\n66: cmp r9, {class_max} - 1\nja 99f\ncmp ", $align, ", {run}\njae 99f\n\
                 bsr ecx, r9d\nsub ecx, 3\nshr r9d, cl\nlea r9d, [r9 + rcx*8 - {bias}]\njmp 22b\n99: ",
                $miss,
                "\njmp {slow}\n",
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
        $crate::__aligned_hit!($slow, "rdi", "rsi", "", "ret", "")
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
            "rsi",
            "rdx",
            "mov r11, rdx\ntest sil, 7\njnz 99f",
            "mov qword ptr [rdi], rax\nxor eax, eax\nret",
            "mov rdx, r11"
        )
    };
}

/// Body of a naked `fn(class) -> object`: the hit path of an allocation whose class the caller knows.
/// A miss tail-jumps to `$slow` with the class still in rdi.
///
/// Budget: 18 instructions, no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __alloc_class_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $crate::__section_open!(),
                $crate::__section_pop!("rdi"),
                "99: jmp {slow}\n",
                $crate::__section_abort!(),
                ".cfi_endproc\n.p2align 6",
            ),
            hot = sym $crate::seam::HOT,
            slow = sym $slow,
        )
    };
}

/// Body of a naked `fn(object)`: the hit path of free.  A miss tail-jumps to `$slow` with the
/// object still in rdi.  The look-up of the class byte starts from the slice of the CPU's own
/// node, so its range check is the locality check.  An object of another node has a section of its own,
/// since a section can have but one last store.
///
/// Budget: no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_hit {
    ($slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $crate::__section_open!(),
                $crate::__section_find!("rsi", "97f"),
                "movzx esi, byte ptr [rax + rsi]\nlea r8, [rcx + rsi*8]\n",
                $crate::__section_push!(),
                "99: jmp {slow}\n",
                $crate::__section_abort!(),
                "97:\n",
                $crate::__section_open!(),
                $crate::__section_find_away!(),
                $crate::__section_push!(),
                "99: jmp {slow}\n",
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
/// byte.  Other misses tail-jump to `$slow`; both with the object still in rdi.
///
/// Budget: 24 instructions, no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_class_hit {
    ($free:path, $slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $crate::__section_open!(),
                $crate::__section_push_expected!("rsi", "sil"),
                "88: jmp {free}\n99: jmp {slow}\n",
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

/// Body of a naked `fn(object, size)`, or of one that has the size in its third argument, and brings it to rsi: as
/// `__free_class_hit`, for the class that malloc takes for that size.  Sizes above the table's go to
/// `$free` at once; so do C++ deletes with a wrong size, which are common.  Both targets find the size in
/// rsi.
///
/// Budget: 30 instructions, no atomic read-modify-write, no lock, no system call, no call.
#[doc(hidden)]
#[macro_export]
macro_rules! __free_sized_hit {
    (second, $free:path, $slow:path) => {
        $crate::__free_sized_hit!("", $free, $slow)
    };
    (third, $free:path, $slow:path) => {
        $crate::__free_sized_hit!("mov rsi, rdx\n", $free, $slow)
    };
    ($begin:literal, $free:path, $slow:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n",
                $begin,
                "cmp rsi, {table_max}\nja 88f\nlea edx, [rsi + 7]\nshr edx, 3\n\
                 lea rax, [rip + {table}]\nmovzx r9d, byte ptr [rax + rdx]\n",
                $crate::__section_open!(),
                $crate::__section_push_expected!("r9", "r9b"),
                "88: jmp {free}\n99: jmp {slow}\n",
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
