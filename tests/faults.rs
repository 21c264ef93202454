//! Misuse is named: one line on stderr with the fault and the address, then abort.

mod support;

use support::{EVERY_SETTING, Run, Setting, compile, passes};

const SIGABRT: i32 = 6;

fn dies_naming(source: &str, fault: &str) {
    let program = compile(&format!("misuse/{source}"), &[]);
    for setting in [Setting::Default, Setting::FakeNodes, Setting::NoRseq] {
        let outcome = Run::on_homenode(&program, setting).limit(20).outcome();
        let text = format!("{source} ({setting:?}): {outcome:?}");
        assert_eq!(outcome.signal(), Some(SIGABRT), "{text}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{text}");
        assert!(outcome.stderr.starts_with("homenode: "), "{text}");
        assert!(outcome.stderr.contains(fault), "no \"{fault}\" in {text}");
        let address = outcome.stdout.trim();
        assert!(address.starts_with("0x"), "{text}");
        assert!(outcome.stderr.contains(address), "no {address} in {text}");
    }
}

#[test]
fn a_small_double_free_is_named() {
    dies_naming("double_free_small.c", "double free");
}

#[test]
fn a_double_free_of_a_run_is_named() {
    dies_naming("double_free_run.c", "double free");
}

#[test]
fn a_double_free_after_a_trim_is_named() {
    dies_naming("double_free_after_trim.c", "double free");
}

#[test]
fn a_large_double_free_is_named() {
    dies_naming("double_free_large.c", "double free");
}

#[test]
fn a_large_double_free_with_another_in_between_is_named() {
    dies_naming("double_free_displaced.c", "double free");
}

#[test]
fn a_large_block_used_after_its_free_is_named() {
    dies_naming("realloc_of_freed_large.c", "double free");
    dies_naming("usable_size_of_freed_large.c", "double free");
}

#[test]
fn a_double_free_by_two_threads_is_named() {
    dies_naming("double_free_across_threads.c", "double free");
}

#[test]
fn a_small_interior_pointer_is_named() {
    dies_naming("free_interior_small.c", "interior pointer");
}

#[test]
fn a_large_interior_pointer_is_named() {
    dies_naming("free_interior_large.c", "interior pointer");
}

#[test]
fn a_misaligned_pointer_is_named() {
    dies_naming("free_misaligned_small.c", "misaligned pointer");
}

#[test]
fn a_pointer_never_allocated_is_named() {
    dies_naming("free_never_allocated.c", "pointer never allocated");
}

#[test]
fn a_large_block_freed_by_two_at_once_is_named() {
    passes("a_large_block_freed_by_two_at_once_is_named.c", &["100"], EVERY_SETTING);
}

#[test]
fn a_pointer_never_allocated_is_named_in_a_handler() {
    dies_naming("free_never_allocated_in_handler.c", "pointer never allocated");
}

#[test]
fn an_interior_pointer_is_named_in_a_handler() {
    dies_naming("free_interior_in_handler.c", "interior pointer");
}
