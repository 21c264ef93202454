//! The tagged-object stress, short, and churn with every call checked. `TEST_STRESS_SECONDS` lengthens each run.

mod support;

use support::{Outcome, Run, Setting, compile, number};

fn survives(setting: Setting, options: &str) {
    let program = compile("stress_tagged.c", &[]);
    let seconds = number("TEST_STRESS_SECONDS", 3);
    let limit = seconds.parse::<u64>().expect("TEST_STRESS_SECONDS is a number") + 60;
    let options: Vec<&str> = options.split_whitespace().collect();
    Run::on_homenode(&program, setting)
        .args(&["-s", &seconds])
        .args(&options)
        .limit(limit)
        .passes();
}

#[test]
fn fenced_drains_lose_nothing() {
    survives(Setting::Default, "-t 2 -f 20000 -q 0");
}

#[test]
fn quiet_drains_lose_nothing() {
    survives(Setting::Default, "-t 2 -f 0 -q 20000");
}

#[test]
fn one_thread_and_both_drains_lose_nothing() {
    survives(Setting::Default, "-t 1 -f 10000 -q 10000 -i 100");
}

#[test]
fn signals_forks_and_exits_amid_both_drains_lose_nothing() {
    survives(Setting::Default, "-t 16 -f 10000 -q 10000 -i 200 -k 20 -r 30");
}

#[test]
fn remote_frees_of_two_nodes_lose_nothing() {
    survives(Setting::FakeNodes, "-t 4 -p -f 10000 -q 10000 -i 200 -k 20 -r 30");
}

#[test]
fn remote_frees_without_drains_lose_nothing() {
    survives(Setting::FakeNodes, "-t 4 -p -f 0 -q 0 -r 20");
}

#[test]
fn an_own_registration_loses_nothing() {
    survives(Setting::OwnRseq, "-t 4 -f 10000 -q 10000 -i 200 -k 20 -r 30");
}

#[test]
fn running_without_rseq_loses_nothing() {
    survives(Setting::NoRseq, "-t 4 -f 1000 -q 1000 -i 200 -k 20 -r 30");
}

/// Every call is checked amid threads, forks, handlers and exits.
fn churns(threads: &str, seconds: &str, memory: &str, fault: &str) -> Outcome {
    let program = compile("a_fault_amid_churn_is_named.c", &[]);
    let limit = seconds.parse::<u64>().expect("seconds are a number") + 60;
    Run::on_homenode(&program, Setting::Default)
        .env("HOMENODE_CHECK", "full")
        .args(&[threads, &format!("{seconds}000"), memory, fault])
        .limit(limit)
        .outcome()
}

#[test]
fn full_mode_amid_churn_names_no_fault() {
    for (threads, memory) in [("2", "free"), ("16", "free"), ("8", "limited")] {
        let outcome = churns(threads, &number("TEST_STRESS_SECONDS", 3), memory, "none");
        assert!(outcome.passed(), "{threads} threads, {memory}: {outcome:?}");
    }
}

#[test]
fn full_mode_amid_churn_names_a_fault() {
    const FAULTS: &[(&str, &str, usize)] = &[
        ("overflow", "overflow: byte 300001 of {a} ", 0),
        ("double_free", "double free: free of {a} of 300001 bytes", 0),
        ("elsewhere", "double free: free of {a} of 300001 bytes", 0),
        ("interior", "interior pointer: free of {a};", 4096),
        ("realloc", "use after free: realloc of {a} of 300001 bytes", 0),
        ("write_after_free", "use after free: byte 100 of {a} of 300001 bytes", 0),
        ("child_overflow", "overflow: byte 300001 of {a} ", 0),
        ("child_write_after_free", "use after free: byte 100 of {a} of 300001 bytes", 0),
    ];
    for (number, (fault, line, offset)) in FAULTS.iter().enumerate() {
        let outcome = churns(["2", "6", "16"][number % 3], "1", "free", fault);
        let told = outcome.stdout.trim().strip_prefix("0x").map(|a| usize::from_str_radix(a, 16));
        let Some(Ok(address)) = told else { panic!("{fault}: {outcome:?}") };
        let line = line.replace("{a}", &format!("{:#x}", address + offset));
        let is_named = outcome.stderr.contains(&format!("homenode: {line}"));
        assert!(is_named && outcome.signal() == Some(6), "{fault}: {line:?}: {outcome:?}");
    }
}
