//! Tools that look into a program (case P6): valgrind, sanitizers, gdb, profilers.

mod support;

use std::path::{Path, PathBuf};

use support::{
    EVERY_SETTING, Outcome, Run, Setting, compile, compile_with, has_tool, passes, shared_library,
    tool,
};

/// Valgrind takes malloc over, unless told that no library has it; then ours serves.
fn runs_under_valgrind(options: &[&str], arguments: &[&str]) {
    if !has_tool("valgrind") {
        return;
    }
    let program = compile("a_program_runs_under_valgrind.c", &[]);
    Run::on_homenode("valgrind".as_ref(), Setting::Default)
        .args(&["-q", "--error-exitcode=9"])
        .args(options)
        .args(&[&program])
        .args(arguments)
        .passes();
}

#[test]
fn a_program_runs_under_valgrind() {
    runs_under_valgrind(&[], &[]);
}

#[test]
fn a_program_that_we_serve_runs_under_valgrind() {
    runs_under_valgrind(&["--soname-synonyms=somalloc=nouserintercepts"], &["served"]);
}

/// A program built with a sanitizer; none where the compiler has no such runtime, or the system none of its
/// memory layout.
fn sanitized(sanitizer: &str) -> Option<PathBuf> {
    let flags = [format!("-fsanitize={sanitizer}")];
    let flags = flags.each_ref().map(String::as_str);
    let program = compile_with("cc", "a_sanitizer_sees_every_request.c", &flags)
        .inspect_err(|errors| eprintln!("skipped: {errors}"))
        .ok()?;
    let alone = Run::plain(&program).outcome();
    if !alone.passed() {
        eprintln!("skipped: {}", alone.stderr);
    }
    alone.passed().then_some(program)
}

const ASIDE: &str =
    "homenode: a sanitizer's runtime is in this program; its allocator serves in our place";

/// A run under the preload of a sanitized program that may have it before its runtime.
fn beside_a_sanitizer(program: &Path, arguments: &[&str]) -> Outcome {
    Run::on_homenode(program, Setting::Default)
        .env("ASAN_OPTIONS", "verify_asan_link_order=0")
        .args(arguments)
        .outcome()
}

#[test]
fn a_thread_sanitizer_sees_no_race_in_reuse() {
    let Some(program) = sanitized("thread") else { return };
    let outcome = beside_a_sanitizer(&program, &[]);
    assert!(outcome.passed(), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.trim(), ASIDE);
}

#[test]
fn an_address_sanitizer_sees_a_use_after_free() {
    let Some(program) = sanitized("address") else { return };
    let outcome = beside_a_sanitizer(&program, &[]);
    assert!(outcome.passed(), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.trim(), ASIDE);
    let outcome = beside_a_sanitizer(&program, &["read"]);
    assert!(!outcome.passed());
    assert!(outcome.stderr.contains("heap-use-after-free"), "{}", outcome.stderr);
}

#[test]
fn a_program_with_other_sanitizers_is_served() {
    for sanitizer in ["undefined", "leak"] {
        let Some(program) = sanitized(sanitizer) else { continue };
        let outcome = beside_a_sanitizer(&program, &[]);
        assert!(outcome.passed(), "{}", outcome.stderr);
        assert_eq!(outcome.stderr, "", "{sanitizer}");
    }
}

/// Offsets of a hit path's instructions from its symbol, up to its `ret`; none where rseq sections differ.
fn instruction_offsets(symbol: &str) -> Vec<u64> {
    let disassemble = format!("--disassemble={symbol}");
    let text = tool("objdump", &["-d", "--no-show-raw-insn", &disassemble], &shared_library());
    let head = format!("<{symbol}>:");
    let body = text.lines().skip_while(|line| !line.ends_with(&head)).skip(1);
    let mut addresses = Vec::new();
    for line in body {
        let Some((address, instruction)) = line.split_once(':') else { break };
        addresses.push(u64::from_str_radix(address.trim(), 16).expect("an address"));
        if instruction.trim() == "ret" {
            break;
        }
    }
    addresses.iter().map(|address| address - addresses[0]).collect()
}

#[test]
fn a_signal_handler_sees_through_hit_paths() {
    passes("a_signal_handler_sees_through_hit_paths.c", &[], EVERY_SETTING);
}

/// A stop makes a section start again, so each breakpoint is for one stop alone.
#[test]
fn a_debugger_finds_the_caller_from_every_instruction_of_a_hit_path() {
    if !has_tool("gdb") || !has_tool("objdump") {
        return;
    }
    let program = compile("hit_paths_show_their_caller.c", &[]);
    let mut stops = 0;
    let mut commands = vec![
        "set confirm off".to_owned(),
        format!("set environment LD_PRELOAD {}", shared_library().display()),
        "break main".to_owned(),
        "run".to_owned(),
        "tbreak the_caller".to_owned(),
        "ignore $bpnum 40".to_owned(),
        "continue".to_owned(),
    ];
    for symbol in ["malloc", "free", "aligned_alloc", "posix_memalign"] {
        for offset in instruction_offsets(symbol) {
            commands.push(format!("tbreak *((char *)at_{symbol} + {offset})"));
            commands.push("continue".to_owned());
            commands.push("backtrace 2".to_owned());
            stops += 1;
        }
    }
    commands.push("kill".to_owned());
    let arguments: Vec<String> =
        commands.into_iter().flat_map(|command| ["-ex".to_owned(), command]).collect();
    let outcome = Run::plain("gdb".as_ref())
        .args(&["-batch", "-nx"])
        .args(&arguments)
        .args(&[&program])
        .outcome();
    let callers = outcome.stdout.lines().filter(|line| line.contains("in the_caller (")).count();
    assert!(stops > 80, "{stops} instructions in four hit paths");
    assert_eq!(callers, stops, "{}\n{}", outcome.stdout, outcome.stderr);
}
