//! What glibc 2.36, POSIX, C23 and C++17 promise of malloc's family, each promise a rule (cases P4, P5, A1, A2,
//! A3, A5).  Each program counts its rules and names those that are broken: none on glibc's own malloc, none
//! on ours, fortified or not.

mod support;

use support::{EVERY_SETTING, Outcome, Run, Setting, archive, compile, compile_with, has_tool};

/// The same calls, with the compiler's checks of lengths (glibc's fortify.h).
const FORTIFIED: &[&str] = &["-O2", "-D_FORTIFY_SOURCE=3"];

/// How many rules a run kept: all it asked.  0 where there was nothing to ask.
fn rules(name: &str, outcome: &Outcome) -> u32 {
    assert!(outcome.passed(), "{name}: {outcome:?}");
    let words: Vec<_> = outcome.stdout.split_whitespace().collect();
    match words[..] {
        [count, "rules,", "0", "broken"] => count.parse().expect("a number of rules"),
        [] => 0,
        _ => panic!("{name}: {outcome:?}"),
    }
}

/// Asks a program's rules of glibc and of ours.  Ours keeps at least those that glibc keeps.
fn keeps_the_rules(source: &str) {
    for flags in [&[][..], FORTIFIED] {
        let program = compile(source, flags);
        let glibcs = rules(source, &Run::plain(&program).outcome());
        for &setting in EVERY_SETTING {
            let ours = rules(source, &Run::on_homenode(&program, setting).outcome());
            assert!(ours > 0 && ours >= glibcs, "{source} ({setting:?}): {ours} of {glibcs} rules");
        }
    }
    if source.ends_with(".c") {
        keeps_the_rules_on_musl(source);
        keeps_the_rules_in_a_static_program("cc", source);
    }
}

/// Programs for musl ask the same rules, but of what it has not: pvalloc, `malloc_trim` and `mallinfo2`.
fn keeps_the_rules_on_musl(source: &str) {
    if !has_tool("musl-gcc") {
        return;
    }
    let program = compile_with("musl-gcc", source, &[]);
    let program = program.unwrap_or_else(|errors| panic!("{source}: {errors}"));
    for setting in [Setting::Default, Setting::FakeNodes, Setting::NoRseq] {
        assert!(rules(source, &Run::on_homenode(&program, setting).outcome()) > 0);
    }
    keeps_the_rules_in_a_static_program("musl-gcc", source);
}

fn keeps_the_rules_in_a_static_program(compiler: &str, source: &str) {
    let archive = archive();
    let flags = ["-static", "-DCHECK_STATIC", "-Wl,-u,malloc", &archive.to_string_lossy()];
    let program = compile_with(compiler, source, &flags);
    let program = program.unwrap_or_else(|errors| panic!("{source}: {errors}"));
    rules(source, &Run::plain(&program).outcome());
}

#[test]
fn zero_sizes_follow_glibc() {
    keeps_the_rules("zero_sizes_follow_glibc.c");
}

#[test]
fn overflowing_sizes_fail_with_enomem() {
    keeps_the_rules("overflowing_sizes_fail_with_enomem.c");
}

#[test]
fn errno_survives_success_and_free() {
    keeps_the_rules("errno_survives_success_and_free.c");
}

#[test]
fn aligned_requests_follow_glibc() {
    keeps_the_rules("aligned_requests_follow_glibc.c");
}

#[test]
fn aligned_alloc_rejects_a_bad_alignment() {
    keeps_the_rules("aligned_alloc_rejects_a_bad_alignment.c");
}

#[test]
fn posix_memalign_refuses_without_writing() {
    keeps_the_rules("posix_memalign_refuses_without_writing.c");
}

#[test]
fn calloc_zeroes_dirty_memory() {
    keeps_the_rules("calloc_zeroes_dirty_memory.c");
}

#[test]
fn every_alignment_holds() {
    keeps_the_rules("every_alignment_holds.c");
}

#[test]
fn usable_size_is_writable_and_stable() {
    keeps_the_rules("usable_size_is_writable_and_stable.c");
}

#[test]
fn operators_pair_up() {
    keeps_the_rules("operators_pair_up.cc");
}

#[test]
fn a_failing_new_calls_the_handler() {
    keeps_the_rules("a_failing_new_calls_the_handler.cc");
}

#[test]
fn every_block_goes_to_each_legal_partner() {
    keeps_the_rules("every_block_goes_to_each_legal_partner.c");
}
