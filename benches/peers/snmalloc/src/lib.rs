//! snmalloc: its own symbols, exported by the linker, so that no Rust code is called.
#![no_std]

extern crate snmalloc_sys as _;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
