//! The end: one line on standard error, then abort.
#![allow(unsafe_code, reason = "abort")]

use core::fmt::{self, Write};

use super::file::{Fd, Text};

/// Longest line, in bytes.
const LINE_BYTES: usize = 192;

/// Writes one line, `homenode: ` and the message, to standard error in one write.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let mut line = [0; LINE_BYTES];
    let mut text = Text::new(&mut line);
    // A buffer takes everything.
    let _ = writeln!(text, "homenode: {message}");
    // Nobody is left to tell of a failed write.
    let _ = Fd(libc::STDERR_FILENO).write_str(text.text());
}

/// Says what happened and aborts.
#[cold]
pub(crate) fn die(message: fmt::Arguments<'_>) -> ! {
    say(message);
    // SAFETY: abort takes nothing and never returns.
    unsafe { libc::abort() }
}

/// What a program did wrong with a pointer inside our address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The block is free already.
    DoubleFree,
    /// The pointer leads into a block, not to its start.
    Interior,
    /// The pointer is no multiple of 8.
    Misaligned,
    /// No block was ever handed out there.
    NeverAllocated,
}

/// Names the fault and the address, says what to do, and aborts.
#[cold]
pub(crate) fn misuse(fault: Fault, address: usize) -> ! {
    let (name, advice) = match fault {
        Fault::DoubleFree => (
            "double free",
            "nothing is allocated there any more; find the second free of this block",
        ),
        Fault::Interior => ("interior pointer", "free the pointer that the allocation returned"),
        Fault::Misaligned => {
            ("misaligned pointer", "free the pointer that the allocation returned")
        }
        Fault::NeverAllocated => ("pointer never allocated", "find where this value comes from"),
    };
    die(format_args!("{name}: free of {address:#x}; {advice}"))
}

/// An address where no block starts: misaligned, or inside a block.
#[cold]
pub(crate) fn not_a_start(address: usize) -> ! {
    misuse(if address.is_multiple_of(8) { Fault::Interior } else { Fault::Misaligned }, address)
}
