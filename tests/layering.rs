//! Requests go down: a module names only layers below its own, and only `sys` names the system.

use std::fs;
use std::path::{Path, PathBuf};

const BOTTOM_TO_TOP: &[&str] = &[
    "base", "sys", "topo", "policy", "region", "pageheap", "slab", "transfer", "percpu", "pin",
    "front",
];
const ONLY_IN_SYS: &[&str] = &["libc::", "use libc", "asm!"];

fn rank(layer: &str) -> Option<usize> {
    BOTTOM_TO_TOP.iter().position(|&name| name == layer)
}

/// The code without its line comments, whose links may point upward.
fn code(text: &str) -> String {
    let without = |line: &'_ str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().map(without).collect::<Vec<_>>().join("\n")
}

/// The names right after a path prefix: one word, or the first words of a brace group.
fn first_names(rest: &str) -> Vec<&str> {
    let word = |text: &'_ str| -> usize {
        text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![&rest[..word(rest)]];
    };
    let mut depth = 0;
    let mut names = Vec::new();
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(group[start..at].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    names.into_iter().map(|name| &name[..word(name)]).collect()
}

/// Layers that the code of a module `depth` levels below the crate root names.
fn layers_named(code: &str, depth: usize) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            found.extend(first_names(&code[at + "crate::".len()..]));
        }
    }
    for (at, _) in code.match_indices("super::") {
        if code[..at].ends_with("super::") {
            continue;
        }
        let rest = &code[at..];
        let tail = rest.trim_start_matches("super::");
        if (rest.len() - tail.len()) / "super::".len() >= depth {
            found.extend(first_names(tail));
        }
    }
    found.retain(|name| rank(name).is_some());
    found
}

/// What is wrong with a file: its upward names, and the system named outside `sys`.
fn faults(path: &Path, text: &str) -> Vec<String> {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let layer = parts[0].trim_end_matches(".rs");
    let Some(own) = rank(layer) else {
        return Vec::new();
    };
    let depth = parts.len() - usize::from(path.ends_with("mod.rs"));
    let code = code(text);
    let upward = layers_named(&code, depth).into_iter().filter(|name| rank(name) > Some(own));
    let mut faults: Vec<_> = upward.map(|name| format!("{layer} names {name} above it")).collect();
    if layer != "sys" {
        let named = ONLY_IN_SYS.iter().filter(|word| code.contains(**word));
        faults.extend(named.map(|word| format!("{layer} contains `{word}`")));
    }
    faults
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the source folder can be read") {
        let path = entry.expect("the source folder can be read").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_module_names_a_layer_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for file in sources(&root) {
        let text = fs::read_to_string(&file).expect("a source file is text");
        let path = file.strip_prefix(&root).expect("the file lies below the source folder");
        wrong
            .extend(faults(path, &text).iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_folder_is_a_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in sources(&root) {
        let path = file.strip_prefix(&root).expect("the file lies below the source folder");
        let first = path.iter().next().expect("a path has a part").to_string_lossy();
        let known = first == "lib.rs" || rank(first.trim_end_matches(".rs")).is_some();
        assert!(known, "{} belongs to no layer", path.display());
    }
}

#[test]
fn an_upward_name_is_found() {
    let found = |path: &str, text: &str| !faults(Path::new(path), text).is_empty();
    assert!(found("base/lock.rs", "use crate::sys::futex;"));
    assert!(found("slab/mod.rs", "fn f() { crate::front::init(); }"));
    assert!(found("slab/mod.rs", "use crate::{base::units, percpu::{a, b}};"));
    assert!(found("slab/mod.rs", "use crate::{\n    base,\n    transfer::Ring,\n};"));
    assert!(found("slab/classes.rs", "use super::super::percpu::Slab;"));
    assert!(found("slab/mod.rs", "use super::percpu::Slab;"));
    assert!(found("region/mod.rs", "unsafe { libc::mmap() }"));
    assert!(found("percpu/mod.rs", "naked_asm!(\"ret\")"));
    assert!(!found("front/mod.rs", "use crate::{base::units, percpu::{a, b}};"));
    assert!(!found("slab/classes.rs", "use super::span; // crate::front reads it"));
    assert!(!found("sys/mem.rs", "use libc::mmap;"));
}
