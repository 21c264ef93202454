//! Policies as programs meet them, on invented nodes: where memory really is, guests tell (tests/guest).

mod support;

use std::path::{Path, PathBuf};

use support::{EVERY_SETTING, Outcome, Run, Setting, compile};

const NODES: &str = "HOMENODE_FAKE_NODES";
const POLICY: &str = "HOMENODE_POLICY";

fn program(name: &str) -> PathBuf {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("cabi/include");
    compile(name, &["-I", include.to_str().expect("a path in UTF-8")])
}

#[test]
fn policy_texts_are_checked() {
    let program = program("policy_texts_are_checked.c");
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).passes();
    }
}

#[test]
fn a_policy_chooses_the_home() {
    let program = program("a_policy_chooses_the_home.c");
    for setting in [Setting::Default, Setting::OwnRseq, Setting::NoRseq] {
        Run::on_homenode(&program, setting).env(NODES, "4").passes();
    }
}

#[test]
fn blocks_move_between_nodes() {
    let program = program("blocks_move_between_nodes.c");
    for setting in [Setting::Default, Setting::OwnRseq, Setting::NoRseq] {
        Run::on_homenode(&program, setting).env(NODES, "4").passes();
    }
    Run::on_homenode(&program, Setting::Default)
        .env(NODES, "4")
        .env("HOMENODE_CHECK", "full")
        .passes();
}

#[test]
fn policies_may_change_amid_churn() {
    let program = program("policies_may_change_amid_churn.c");
    for setting in [Setting::Default, Setting::OwnRseq, Setting::NoRseq] {
        Run::on_homenode(&program, setting).env(NODES, "4").args(&["2", "6"]).passes();
    }
}

fn said(policy: &str) -> Outcome {
    Run::on_homenode("/bin/sh".as_ref(), Setting::Default)
        .args(&["-c", ":"])
        .env(NODES, "2")
        .env(POLICY, policy)
        .outcome()
}

#[test]
fn a_wrong_policy_is_named_once_with_what_is_wrong() {
    for (policy, shown, wrong) in [
        ("bind:0,x", "bind:0,x", "byte 7: a number is missing"),
        ("bind:7", "bind:7", "none of the nodes is here, or the process may not use their memory"),
        (
            "Local",
            "Local",
            "byte 0: no policy (local, bind, preferred, interleave, weighted, firsttouch)",
        ),
    ] {
        let outcome = said(policy);
        assert!(outcome.passed(), "{outcome:?}");
        let line = format!(
            "homenode: setting HOMENODE_POLICY={shown} is not taken: {wrong}; local is taken instead\n"
        );
        assert_eq!(outcome.stderr, line);
    }
}

#[test]
fn a_right_policy_is_taken_in_silence() {
    for policy in
        ["local", "firsttouch", "bind:1", "preferred:0,1,9", "interleave:0-1", "weighted:0*3,1"]
    {
        let outcome = said(policy);
        assert!(outcome.passed() && outcome.stderr.is_empty(), "{policy}: {outcome:?}");
    }
}
