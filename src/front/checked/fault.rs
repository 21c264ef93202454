//! The lines that checks end the program with: what happened, to which block, of how many bytes, what to do.

use crate::sys::fatal::die;

/// What a program wants of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::front) enum Call {
    Free,
    Realloc,
    UsableSize,
    Exit,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Realloc => "realloc",
            Self::UsableSize => "malloc_usable_size",
            Self::Exit => "exit",
        }
    }
}

/// The block was freed before.
#[cold]
pub(super) fn freed(address: usize, size: usize, call: Call) -> ! {
    if call == Call::Free {
        die(format_args!(
            "double free: free of {address:#x} of {size} bytes; nothing is allocated there any more; \
             find the second free of this block"
        ))
    }
    die(format_args!(
        "use after free: {} of {address:#x} of {size} bytes, which was freed; \
         find who still uses this block",
        call.name()
    ))
}

/// A freed block was written, at byte `at`.
#[cold]
pub(super) fn written(address: usize, size: usize, at: usize) -> ! {
    let name = if at < size { "use after free" } else { "overflow" };
    die(format_args!(
        "{name}: byte {at} of {address:#x} of {size} bytes was written after its free; \
         find who still uses this block"
    ))
}

/// A freed block was written past its end, over the record there.
#[cold]
pub(super) fn overrun(address: usize, room: usize) -> ! {
    die(format_args!(
        "overflow: {address:#x} of at most {room} bytes was written past its end after its free; \
         find who still uses this block"
    ))
}

/// A live block was written past its end, at byte `at`.
#[cold]
pub(super) fn overflown(address: usize, size: usize, at: usize, call: Call) -> ! {
    die(format_args!(
        "overflow: byte {at} of {address:#x} of {size} bytes was written, as its {} shows; \
         find that write, or ask for more bytes",
        call.name()
    ))
}

/// A live block was written past its end, over the record there.
#[cold]
pub(super) fn overflown_far(address: usize, room: usize, call: Call) -> ! {
    die(format_args!(
        "overflow: {address:#x} of at most {room} bytes was written past its end, as its {} shows; \
         find that write, or ask for more bytes",
        call.name()
    ))
}

/// A free tells a size that the block does not have.
#[cold]
pub(in crate::front) fn wrong_size(address: usize, size: usize, told: usize) -> ! {
    die(format_args!(
        "wrong size: free of {address:#x} of {size} bytes as if it had {told}; \
         pass the size that was asked for"
    ))
}
