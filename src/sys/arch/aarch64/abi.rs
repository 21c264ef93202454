//! What C and C++ need in assembler, as bodies of naked functions of the C ABI's package.

/// Makes the call `$call` from a naked function, keeping x0 and x1; what it returns goes to x9.
#[doc(hidden)]
#[macro_export]
macro_rules! __keeping_arguments {
    ($call:literal) => {
        concat!(
            "stp x29, x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset x29, -32\n.cfi_offset x30, -24\n\
             stp x0, x1, [sp, #16]\n",
            $call,
            "\nmov x9, x0\nldp x0, x1, [sp, #16]\nldp x29, x30, [sp], #32\n.cfi_def_cfa_offset 0\n\
             .cfi_restore x29\n.cfi_restore x30\n",
        )
    };
}

/// Loads the address of a symbol of another library, 0 where nobody defines it, into `$register`.
#[doc(hidden)]
#[macro_export]
macro_rules! __load_global {
    ($register:literal, $name:literal) => {
        concat!(
            "adrp ",
            $register,
            ", :got:",
            $name,
            "\nldr ",
            $register,
            ", [",
            $register,
            ", :got_lo12:",
            $name,
            "]\n"
        )
    };
}

/// Leaves for the next library's new, whose address is in x9, with the size in x0.  A size that no object has is
/// cut to the largest one: rounded up to an alignment it would become a small one (libstdc++ 12).
#[doc(hidden)]
#[macro_export]
macro_rules! __next_new {
    () => {
        "mov x10, #0x7fffffffffffffff\ncmp x0, x10\ncsel x0, x10, x0, hi\nmov x16, x9\nbr x16\n"
    };
}

/// A throwing new after its hit path missed: x0 is the size, x1 the alignment if there is one.
/// Where no other library has a new (a static program: ours is the only one), the loop of the C++
/// standard is run here: the `new_handler`, again and again, or else `bad_alloc`, made of those parts
/// of libstdc++ that any program which can catch it has.
#[doc(hidden)]
#[macro_export]
macro_rules! __throwing_new {
    ($slow:path, $next:path) => {
        core::arch::naked_asm!(
            concat!(
                ".weak _ZSt15get_new_handlerv, __cxa_allocate_exception, __cxa_throw\n",
                ".weak _ZTVSt9bad_alloc, _ZTISt9bad_alloc, _ZNSt9bad_allocD1Ev\n",
                ".cfi_startproc\n66:\n",
                $crate::__keeping_arguments!("bl {slow}"),
                "cbz x9, 22f\nmov x0, x9\nret\n22:\n",
                $crate::__keeping_arguments!("bl {next}"),
                "cbz x9, 33f\n",
                $crate::__next_new!(),
                "33:\n",
                $crate::__load_global!("x16", "_ZSt15get_new_handlerv"),
                "cbz x16, 44f\n",
                $crate::__keeping_arguments!("blr x16"),
                "cbz x9, 44f\nmov x16, x9\n",
                $crate::__keeping_arguments!("blr x16"),
                "b 66b\n44:\n",
                $crate::__load_global!("x16", "_ZTISt9bad_alloc"),
                "cbz x16, 55f\n",
                // throw std::bad_alloc(): an object that is its vtable pointer (Itanium C++ ABI, 2.4.2).
                $crate::__load_global!("x16", "__cxa_allocate_exception"),
                "mov x0, #8\n",
                $crate::__keeping_arguments!("blr x16"),
                $crate::__load_global!("x10", "_ZTVSt9bad_alloc"),
                "add x10, x10, #16\nstr x10, [x9]\nmov x0, x9\n",
                $crate::__load_global!("x1", "_ZTISt9bad_alloc"),
                $crate::__load_global!("x2", "_ZNSt9bad_allocD1Ev"),
                $crate::__load_global!("x16", "__cxa_throw"),
                "br x16\n55: b {none}\n.cfi_endproc",
            ),
            slow = sym $slow,
            next = sym $next,
            none = sym $crate::seam::die_of_no_new,
        )
    };
}

/// A nothrow new after its hit path missed: as `__throwing_new`.  Without a `new_handler`, for which `$handler`
/// asks, the result is null at once: to throw and catch takes 2 KiB of stack.  With one the next library's new
/// runs the loop of the standard and catches what is thrown there; where there is none (a static program), that
/// loop is run here, by `$call`: see `__handler_returns`.
#[doc(hidden)]
#[macro_export]
macro_rules! __nothrow_new {
    ($slow:path, $next:path, $handler:path, $call:path) => {
        core::arch::naked_asm!(
            concat!(
                ".cfi_startproc\n66:\n",
                $crate::__keeping_arguments!("bl {slow}"),
                "cbz x9, 22f\nmov x0, x9\nret\n22:\n",
                $crate::__keeping_arguments!("bl {handler}"),
                "cbz x9, 33f\n",
                $crate::__keeping_arguments!("bl {next}"),
                "cbz x9, 44f\n",
                $crate::__next_new!(),
                "44:\n",
                $crate::__keeping_arguments!("bl {call}"),
                "cbnz x9, 66b\n33: mov x0, xzr\nret\n.cfi_endproc",
            ),
            slow = sym $slow,
            next = sym $next,
            handler = sym $handler,
            call = sym $call,
        )
    };
}

/// Calls the `new_handler` that `$handler` names.  1: it returned; 0: there is none, or it has thrown, and what it
/// threw is caught, as by `catch (...)`.  The table is that of Itanium C++ ABI, Exception Handling, 7.1, in GCC's form.
#[doc(hidden)]
#[macro_export]
macro_rules! __handler_returns {
    ($handler:path) => {
        core::arch::naked_asm!(
            concat!(
                ".weak __gxx_personality_v0, __cxa_begin_catch, __cxa_end_catch\n",
                ".cfi_startproc\n",
                ".cfi_personality 0x9b, .Lhomenode_personality\n.cfi_lsda 0x1b, .Lhomenode_catch\n",
                "11: stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x29, -16\n.cfi_offset x30, -8\n",
                "bl {handler}\ncbz x0, 44f\n22: blr x0\n33: mov x0, #1\n",
                "44: .cfi_remember_state\nldp x29, x30, [sp], #16\n.cfi_def_cfa_offset 0\n",
                ".cfi_restore x29\n.cfi_restore x30\nret\n.cfi_restore_state\n",
                // Landing pad: the frame is as it was at the call, and x0 is the exception.
                "55:\n",
                $crate::__load_global!("x16", "__cxa_begin_catch"),
                "blr x16\n",
                $crate::__load_global!("x16", "__cxa_end_catch"),
                "blr x16\nmov x0, xzr\nb 44b\n.cfi_endproc\n",
                $crate::__catch_all!(),
            ),
            handler = sym $handler,
        )
    };
}

/// Body of a naked `vfork`: `$fail` gets the errno.  Both fork and vfork are clone(2) here, told apart by
/// its flags.  The return address is in a register during the call, which each of the two processes has for
/// itself, since the child's calls overwrite the parent's stack.
#[doc(hidden)]
#[macro_export]
macro_rules! __vfork {
    ($fail:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, #-16]!",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset x29, -16",
            ".cfi_offset x30, -8",
            "bl {begin}",
            "ldp x29, x30, [sp], #16",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            // x9: the call's flags, which the kernel leaves alone as it does all but x0.  Its result is
            // the kernel's, or the one in x1, a test's.
            "mov x9, x0",
            "mov x0, x1",
            "cbnz x0, 33f",
            "mov x0, x9",
            "mov x1, xzr",
            "mov x2, xzr",
            "mov x3, xzr",
            "mov x4, xzr",
            "mov x8, #{clone}",
            "svc #0",
            "cbz x0, 22f",
            // The parent, or an error.
            "33: stp x29, x30, [sp, #-32]!",
            ".cfi_def_cfa_offset 32",
            ".cfi_offset x29, -32",
            ".cfi_offset x30, -24",
            "str x0, [sp, #16]",
            "mov x1, x0",
            "mov x0, x9",
            "bl {end}",
            "ldr x0, [sp, #16]",
            "tbz x0, #63, 44f",
            "neg w0, w0",
            "bl {error}",
            "mov w0, #-1",
            "44: ldp x29, x30, [sp], #32",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "22: ret",
            ".cfi_endproc",
            begin = sym $crate::seam::vfork_begin,
            end = sym $crate::seam::vfork_end,
            error = sym $fail,
            clone = const $crate::seam::SYS_CLONE,
        )
    };
}
