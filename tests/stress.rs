//! The tagged-object stress, short. `TEST_STRESS_SECONDS` lengthens each run.

mod support;

use support::{Run, Setting, compile, number};

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
