//! Misuse is named: one line on stderr with the fault and the address, then abort.  A program of
//! `tests/c/misuse` prints the address, misuses it, says so if it survives the call, and drains.

mod support;

use support::{EVERY_SETTING, Outcome, Run, Setting, compile, passes, small_programs};

const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;
const SURVIVED: &str = "survived";

/// When a fault is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// By the call that does it; a write by the next call, or by the call that ends the block's life.
    AtTheCall,
    /// By the next drain at the latest.
    ByTheDrain,
    /// By libc, which gets pointers outside our space.
    ByLibc,
    /// At exit.
    AtExit,
    Never,
}
use When::{AtExit, AtTheCall, ByLibc, ByTheDrain, Never};

/// A line, without its prefix; `{a}` stands for the address.
type Line = &'static str;

const DOUBLE_FREE: Line = "double free: free of {a}; nothing is allocated there any more; \
                           find the second free of this block";
const INTERIOR: Line =
    "interior pointer: free of {a}; free the pointer that the allocation returned";
const MISALIGNED: Line =
    "misaligned pointer: free of {a}; free the pointer that the allocation returned";
const NEVER_ALLOCATED: Line =
    "pointer never allocated: free of {a}; find where this value comes from";
const STRANGER: Line = "pointer outside the heap: free of {a}, which homenode never handed out; \
                        find which allocator it comes from";

macro_rules! freed_twice {
    ($bytes:literal) => {
        concat!(
            "double free: free of {a} of ",
            $bytes,
            " bytes; nothing is allocated there any more; find the second free of this block"
        )
    };
}
macro_rules! used_after_free {
    ($call:literal, $bytes:literal) => {
        concat!(
            "use after free: ",
            $call,
            " of {a} of ",
            $bytes,
            " bytes, which was freed; find who still uses this block"
        )
    };
}
macro_rules! written_after_free {
    ($name:literal, $byte:literal, $bytes:literal) => {
        concat!(
            $name,
            ": byte ",
            $byte,
            " of {a} of ",
            $bytes,
            " bytes was written after its free; find who still uses this block"
        )
    };
}
macro_rules! overflown {
    ($byte:literal, $bytes:literal, $call:literal) => {
        concat!(
            "overflow: byte ",
            $byte,
            " of {a} of ",
            $bytes,
            " bytes was written, as its ",
            $call,
            " shows; find that write, or ask for more bytes"
        )
    };
}
macro_rules! overflown_far {
    ($bytes:literal) => {
        concat!(
            "overflow: {a} of at most ",
            $bytes,
            " bytes was written past its end, as its free shows; \
             find that write, or ask for more bytes"
        )
    };
}
macro_rules! wrong_size {
    ($bytes:literal, $told:literal) => {
        concat!(
            "wrong size: free of {a} of ",
            $bytes,
            " bytes as if it had ",
            $told,
            "; pass the size that was asked for"
        )
    };
}

/// A program, when and how default mode names its fault, and when and how full mode does.
type Fault = (&'static str, (When, Line), (When, Line));

const FAULTS: &[Fault] = &[
    ("double_free_small", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("48"))),
    ("double_free_run", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("600000"))),
    ("double_free_after_trim", (AtTheCall, DOUBLE_FREE), (AtTheCall, DOUBLE_FREE)),
    ("double_free_large", (AtTheCall, DOUBLE_FREE), (AtTheCall, DOUBLE_FREE)),
    ("double_free_displaced", (AtTheCall, DOUBLE_FREE), (AtTheCall, DOUBLE_FREE)),
    ("double_free_across_threads", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("200"))),
    ("double_free_delayed", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("80"))),
    ("double_free_aligned", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("1000"))),
    ("double_free_calloc", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("300"))),
    ("double_free_in_child", (ByTheDrain, DOUBLE_FREE), (AtTheCall, freed_twice!("500"))),
    ("free_interior_small", (ByTheDrain, INTERIOR), (AtTheCall, INTERIOR)),
    ("free_interior_run", (ByTheDrain, INTERIOR), (AtTheCall, INTERIOR)),
    ("free_interior_large", (AtTheCall, INTERIOR), (AtTheCall, INTERIOR)),
    ("free_misaligned_small", (ByTheDrain, MISALIGNED), (AtTheCall, MISALIGNED)),
    ("free_misaligned_large", (AtTheCall, MISALIGNED), (AtTheCall, MISALIGNED)),
    ("free_never_allocated", (AtTheCall, NEVER_ALLOCATED), (AtTheCall, NEVER_ALLOCATED)),
    ("free_stack_pointer", (ByLibc, ""), (AtTheCall, STRANGER)),
    ("free_static_pointer", (ByLibc, ""), (AtTheCall, STRANGER)),
    ("free_uninitialised_pointer", (ByLibc, ""), (AtTheCall, STRANGER)),
    ("realloc_stack_pointer", (ByLibc, ""), (AtTheCall, STRANGER)),
    ("realloc_interior_small", (AtTheCall, INTERIOR), (AtTheCall, INTERIOR)),
    (
        "free_sized_too_much_small",
        (AtTheCall, wrong_size!("112", "500")),
        (AtTheCall, wrong_size!("100", "500")),
    ),
    ("free_sized_too_much_in_class", (Never, ""), (AtTheCall, wrong_size!("100", "110"))),
    (
        "free_sized_too_much_large",
        (AtTheCall, wrong_size!("2097152", "5242880")),
        (AtTheCall, wrong_size!("2097152", "5242880")),
    ),
    (
        "free_aligned_sized_too_much",
        (AtTheCall, wrong_size!("128", "4096")),
        (AtTheCall, wrong_size!("128", "4096")),
    ),
    ("delete_sized_too_much", (Never, ""), (AtTheCall, wrong_size!("40", "400"))),
    (
        "write_after_free_small",
        (Never, ""),
        (AtTheCall, written_after_free!("use after free", "99", "100")),
    ),
    (
        "write_after_free_run",
        (Never, ""),
        (AtTheCall, written_after_free!("use after free", "5000", "600000")),
    ),
    (
        "write_after_free_large",
        (Never, ""),
        (AtTheCall, written_after_free!("use after free", "5000", "2097152")),
    ),
    (
        "write_after_free_late",
        (Never, ""),
        (AtExit, written_after_free!("use after free", "50", "100")),
    ),
    (
        "write_after_free_of_all_that_is_usable",
        (Never, ""),
        (AtTheCall, written_after_free!("use after free", "0", "1000")),
    ),
    (
        "write_after_realloc",
        (Never, ""),
        (AtTheCall, written_after_free!("use after free", "10", "100")),
    ),
    ("overflow_small", (Never, ""), (AtTheCall, overflown!("100", "100", "free"))),
    // One class up would be a waste: the record behind the block is what the write meets first.
    ("overflow_of_a_full_class", (Never, ""), (AtTheCall, overflown_far!("64"))),
    ("overflow_large", (Never, ""), (AtTheCall, overflown!("2097162", "2097162", "free"))),
    ("overflow_calloc", (Never, ""), (AtTheCall, overflown!("100", "100", "free"))),
    ("overflow_aligned", (Never, ""), (AtTheCall, overflown!("192", "192", "free"))),
    ("overflow_new", (Never, ""), (AtTheCall, overflown!("100", "100", "free"))),
    ("overflow_far", (Never, ""), (AtTheCall, overflown_far!("112"))),
    ("overflow_before_realloc", (Never, ""), (AtTheCall, overflown!("100", "100", "realloc"))),
    ("overflow_of_a_shrunk_block", (Never, ""), (AtTheCall, overflown!("60", "60", "free"))),
    ("overflow_of_a_kept_block", (Never, ""), (AtExit, overflown!("100", "100", "exit"))),
    (
        "overflow_of_a_freed_block",
        (Never, ""),
        (AtTheCall, written_after_free!("overflow", "100", "100")),
    ),
    (
        "realloc_of_freed_small",
        (ByTheDrain, DOUBLE_FREE),
        (AtTheCall, used_after_free!("realloc", "100")),
    ),
    ("realloc_of_freed_large", (AtTheCall, DOUBLE_FREE), (AtTheCall, DOUBLE_FREE)),
    (
        "usable_size_of_freed_small",
        (Never, ""),
        (AtTheCall, used_after_free!("malloc_usable_size", "100")),
    ),
    ("usable_size_of_freed_large", (AtTheCall, DOUBLE_FREE), (AtTheCall, DOUBLE_FREE)),
];

fn source(name: &str) -> String {
    format!("misuse/{name}.c")
}

fn run(name: &str, setting: Setting, full: bool) -> Outcome {
    let run = Run::on_homenode(&compile(&source(name), &[]), setting).limit(20);
    if full { run.env("HOMENODE_CHECK", "full").outcome() } else { run.outcome() }
}

/// What is wrong with a run whose fault should be named so.
fn disagreement(outcome: &Outcome, (when, line): (When, Line)) -> Option<String> {
    let mut told = outcome.stdout.lines();
    let address = told.next().unwrap_or_default();
    let survived = told.next() == Some(SURVIVED);
    let expected = format!("homenode: {}\n", line.replace("{a}", address));
    let is_named = outcome.signal() == Some(SIGABRT) && outcome.stderr == expected;
    let is_right = match when {
        AtTheCall => is_named && !survived,
        ByTheDrain => is_named,
        AtExit => is_named && survived,
        ByLibc => {
            matches!(outcome.signal(), Some(SIGABRT | SIGSEGV))
                && !outcome.stderr.contains("homenode")
        }
        Never => outcome.status.success() && survived && outcome.stderr.is_empty(),
    };
    (!is_right || !address.starts_with("0x")).then(|| format!("{when:?}: {expected}{outcome:?}"))
}

/// The faults of which a run in one of `settings` disagrees with the table.
fn wrong(settings: &[Setting], full: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for &(name, default, checked) in FAULTS {
        for &setting in settings {
            let expected = if full { checked } else { default };
            let outcome = run(name, setting, full);
            wrong.extend(
                disagreement(&outcome, expected).map(|why| format!("{name} ({setting:?}) {why}")),
            );
        }
    }
    wrong
}

#[test]
fn default_mode_names_what_costs_the_fast_path_nothing() {
    let wrong = wrong(&[Setting::Default, Setting::FakeNodes, Setting::NoRseq], false);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn full_mode_names_each_fault() {
    let wrong = wrong(&[Setting::Default, Setting::FakeNodes, Setting::OwnRseq], true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn full_mode_names_95_percent_of_the_faults_by_the_call() {
    let count = |set: &dyn Fn(&&Fault) -> bool| FAULTS.iter().filter(set).count();
    let named = count(&|(name, _, expected)| {
        expected.0 == AtTheCall
            && disagreement(&run(name, Setting::Default, true), *expected).is_none()
    });
    println!("full mode names {named} of {} faults by the call", FAULTS.len());
    assert!(named * 100 >= FAULTS.len() * 95, "{named} of {}", FAULTS.len());
}

#[test]
fn default_mode_names_every_double_free_large_ones_at_once() {
    for (name, (when, _), _) in FAULTS.iter().filter(|(name, ..)| name.starts_with("double_free")) {
        assert!(matches!(when, AtTheCall | ByTheDrain), "{name}");
        let is_large = name.ends_with("large") || name.ends_with("displaced");
        assert!(!is_large || *when == AtTheCall, "{name}");
    }
}

#[test]
fn a_large_block_freed_by_two_at_once_is_named() {
    passes("a_large_block_freed_by_two_at_once_is_named.c", &["100"], EVERY_SETTING);
}

/// In a handler that interrupted the allocator, default mode names a bad pointer before it writes there.
#[test]
fn a_bad_pointer_is_named_in_a_handler() {
    let lines = [
        ("free_never_allocated_in_handler", NEVER_ALLOCATED),
        ("free_interior_in_handler", INTERIOR),
    ];
    for (name, line) in lines {
        for setting in [Setting::Default, Setting::FakeNodes, Setting::NoRseq] {
            let outcome = run(name, setting, false);
            let why = disagreement(&outcome, (AtTheCall, line));
            assert!(why.is_none(), "{name} ({setting:?}) {why:?}");
        }
    }
}

#[test]
fn real_programs_run_under_full_mode() {
    for (command, answer) in small_programs() {
        for setting in [Setting::Default, Setting::FakeNodes, Setting::OwnRseq] {
            let shell = Run::on_homenode("/bin/sh".as_ref(), setting).env("HOMENODE_CHECK", "full");
            let outcome = shell.args(&["-c", command]).outcome();
            assert!(outcome.passed() && outcome.stderr.is_empty(), "{command}: {outcome:?}");
            assert_eq!(outcome.stdout.trim(), answer, "{command}");
        }
    }
}
