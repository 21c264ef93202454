//! Programs of operations against the model that the tests use, guided by what they reach.
#![no_main]

#[path = "../../tests/support/heap.rs"]
mod heap;
#[path = "../../tests/support/program.rs"]
mod program;

libfuzzer_sys::fuzz_target!(|program: program::Program| {
    if let Err(fault) = program.run() {
        panic!("{fault}");
    }
});
