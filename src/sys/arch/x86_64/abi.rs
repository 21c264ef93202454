//! What C and C++ need in assembler, as bodies of naked functions of the C ABI's package.

/// Calls `$target` from a naked function, keeping rdi and rsi.
#[doc(hidden)]
#[macro_export]
macro_rules! __keeping_arguments {
    ($target:literal) => {
        concat!(
            "push rdi\n.cfi_adjust_cfa_offset 8\npush rsi\n.cfi_adjust_cfa_offset 8\n",
            "sub rsp, 8\n.cfi_adjust_cfa_offset 8\n",
            "call ",
            $target,
            "\nadd rsp, 8\n.cfi_adjust_cfa_offset -8\n",
            "pop rsi\n.cfi_adjust_cfa_offset -8\npop rdi\n.cfi_adjust_cfa_offset -8\n",
        )
    };
}

/// Leaves for the next library's new, whose address is in rax, with the size in rdi.  A size that no object
/// has is cut to the largest one: rounded up to an alignment it would become a small one (libstdc++ 12).
#[doc(hidden)]
#[macro_export]
macro_rules! __next_new {
    () => {
        "mov rcx, -1\nshr rcx, 1\ncmp rdi, rcx\ncmova rdi, rcx\njmp rax\n"
    };
}

/// A throwing new after its hit path missed: rdi is the size, rsi the alignment if there is one.
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
                $crate::__keeping_arguments!("{slow}"),
                "test rax, rax\njz 22f\nret\n22:\n",
                $crate::__keeping_arguments!("{next}"),
                "test rax, rax\njz 33f\n",
                $crate::__next_new!(),
                "33: mov rax, qword ptr [rip + _ZSt15get_new_handlerv@GOTPCREL]\ntest rax, rax\njz 44f\n",
                $crate::__keeping_arguments!("rax"),
                "test rax, rax\njz 44f\n",
                $crate::__keeping_arguments!("rax"),
                "jmp 66b\n",
                "44: mov rax, qword ptr [rip + _ZTISt9bad_alloc@GOTPCREL]\ntest rax, rax\njz 55f\n",
                // throw std::bad_alloc(): an object that is its vtable pointer (Itanium C++ ABI, 2.4.2).
                "mov edi, 8\n",
                $crate::__keeping_arguments!("qword ptr [rip + __cxa_allocate_exception@GOTPCREL]"),
                "mov rcx, qword ptr [rip + _ZTVSt9bad_alloc@GOTPCREL]\nadd rcx, 16\nmov qword ptr [rax], rcx\n",
                "mov rdi, rax\nmov rsi, qword ptr [rip + _ZTISt9bad_alloc@GOTPCREL]\n",
                "mov rdx, qword ptr [rip + _ZNSt9bad_allocD1Ev@GOTPCREL]\n",
                "jmp qword ptr [rip + __cxa_throw@GOTPCREL]\n",
                "55: jmp {none}\n.cfi_endproc",
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
                $crate::__keeping_arguments!("{slow}"),
                "test rax, rax\njz 22f\nret\n22:\n",
                $crate::__keeping_arguments!("{handler}"),
                "test rax, rax\njz 33f\n",
                $crate::__keeping_arguments!("{next}"),
                "test rax, rax\njz 44f\n",
                $crate::__next_new!(),
                "44:\n",
                $crate::__keeping_arguments!("{call}"),
                "test rax, rax\njnz 66b\n33: ret\n.cfi_endproc",
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
                "11: sub rsp, 8\n.cfi_adjust_cfa_offset 8\ncall {handler}\ntest rax, rax\njz 44f\n",
                "22: call rax\n33: mov eax, 1\n",
                "44: add rsp, 8\n.cfi_adjust_cfa_offset -8\nret\n",
                // Landing pad: the frame is as it was at the call, and rax is the exception.
                ".cfi_adjust_cfa_offset 8\n55: mov rdi, rax\n",
                "call qword ptr [rip + __cxa_begin_catch@GOTPCREL]\n",
                "call qword ptr [rip + __cxa_end_catch@GOTPCREL]\nxor eax, eax\njmp 44b\n.cfi_endproc\n",
                $crate::__catch_all!(),
            ),
            handler = sym $handler,
        )
    };
}

/// Body of a naked `vfork`: `$fail` gets the errno.  The return address is kept in a register, which
/// each of the two processes has for itself, since the child's calls overwrite the parent's stack.
#[doc(hidden)]
#[macro_export]
macro_rules! __vfork {
    ($fail:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "call {begin}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            // rsi: the call's number.  Its result is the kernel's, or the one in rdx, a test's.
            "mov rsi, rax",
            "mov rax, rdx",
            "test rax, rax",
            "jnz 33f",
            "mov rax, rsi",
            "pop rdi",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_register rip, rdi",
            "syscall",
            "push rdi",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rip, 0",
            "test rax, rax",
            "jz 22f",
            // The parent, or an error.
            "33: push rax",
            ".cfi_adjust_cfa_offset 8",
            "mov rdi, rsi",
            "mov rsi, rax",
            "call {end}",
            "pop rax",
            ".cfi_adjust_cfa_offset -8",
            "test rax, rax",
            "js 44f",
            "22: ret",
            "44: neg eax",
            "push rax",
            ".cfi_adjust_cfa_offset 8",
            "mov edi, eax",
            "call {error}",
            "pop rcx",
            ".cfi_adjust_cfa_offset -8",
            "mov eax, -1",
            "ret",
            ".cfi_endproc",
            begin = sym $crate::seam::vfork_begin,
            end = sym $crate::seam::vfork_end,
            error = sym $fail,
        )
    };
}
