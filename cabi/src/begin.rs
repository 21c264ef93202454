//! Where in a page the hit path of malloc begins: behind what stands here, in a section of its own.
//!
//! Builds that moved it took a cycle more for a pair of malloc and free, a fourteenth (Sapphire Rapids, the same
//! instructions), so it stays where it was measured.
#![allow(unsafe_code, reason = "assembler: a section of padding that nobody runs")]

core::arch::global_asm!(
    ".pushsection .text.hot.0,\"axR\",@progbits",
    ".p2align 12",
    ".fill 0x680, 1, 0xcc",
    ".popsection",
);
