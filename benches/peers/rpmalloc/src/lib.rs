//! rpmalloc 1.4: its own symbols, exported by the linker, so that no Rust code is called.

extern crate rpmalloc_sys as _;
