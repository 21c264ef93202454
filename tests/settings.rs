//! Settings are one table, and a wrong value is named once, with what is taken instead.

mod support;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use support::{Run, Setting};

/// What a program says on standard error that starts with this in its environment.
fn said(name: &str, value: &[u8]) -> String {
    let outcome = Run::on_homenode("/bin/sh".as_ref(), Setting::Default)
        .args(&["-c", ":"])
        .env_os(name, OsStr::from_bytes(value))
        .outcome();
    assert!(outcome.passed(), "{name}: {outcome:?}");
    outcome.stderr
}

fn line(name: &str, value: &str, taken: &str) -> String {
    format!("homenode: setting {name}={value} is not understood; {taken} is taken instead\n")
}

#[test]
fn a_wrong_value_is_named_once_with_what_is_taken() {
    for (name, value, taken) in [
        ("HOMENODE_FAKE_NODES", "65", "0"),
        ("HOMENODE_FAKE_NODES", "-1", "0"),
        ("HOMENODE_RSEQ", "maybe", "on"),
        ("HOMENODE_RSEQ", "", "on"),
        ("HOMENODE_RSEQ", "OFF", "on"),
        ("HOMENODE_SLICE", "33", "1048576"),
        ("HOMENODE_STATS", "yes", "brief"),
        ("HOMENODE_SLICE", "99999999999999999999", "1048576"),
    ] {
        assert_eq!(said(name, value.as_bytes()), line(name, value, taken));
    }
}

#[test]
fn a_long_value_or_one_that_is_no_text_leaves_the_line_whole() {
    let shown = "é".repeat(24);
    let long = "é".repeat(500);
    assert_eq!(said("HOMENODE_SLICE", long.as_bytes()), line("HOMENODE_SLICE", &shown, "1048576"));
    assert_eq!(said("HOMENODE_SLICE", b"6\xff"), line("HOMENODE_SLICE", "\u{fffd}", "1048576"));
}

#[test]
fn right_values_and_other_names_are_taken_in_silence() {
    for (name, value) in [
        ("HOMENODE_FAKE_NODES", "2"),
        ("HOMENODE_RSEQ", "off"),
        ("HOMENODE_SLICE", "64"),
        ("HOMENODE_STATS", "full"),
        ("HOMENODE_OF_ANOTHER_VERSION", "1"),
    ] {
        assert_eq!(said(name, value.as_bytes()), "");
    }
}

#[test]
fn the_table_has_each_setting_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join("src/front/settings.rs")).expect("the source");
    let known: BTreeSet<_> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" =>"))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("HOMENODE_"))
        .collect();
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let rows: Vec<_> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `HOMENODE_")?.split_once('`'))
        .map(|(name, _)| format!("HOMENODE_{name}"))
        .collect();
    assert!(known.len() >= 3, "{known:?}");
    assert_eq!(rows.len(), known.len(), "{rows:?}");
    assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), known);
}
