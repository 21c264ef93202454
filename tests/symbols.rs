//! What the shared library exports, imports and needs: exactly the list, libc alone.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use support::{shared_library, tool};

/// What ld-linux itself provides, and what is resolved weakly or not at all.
const NEEDED: &[&str] = &["libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];

/// glibc's share of a 64-byte static TLS block is what lets a second copy be opened.
const TLS_BYTES: u64 = 64;

fn wanted() -> BTreeSet<&'static str> {
    let lines = include_str!("symbols.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn the_exports_are_exactly_the_list() {
    let text = tool("nm", &["-D", "--defined-only", "--format=posix"], &shared_library());
    let found: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| name.split('@').next().unwrap_or(name))
        .collect();
    let wanted = wanted();
    let missing: Vec<_> = wanted.difference(&found).collect();
    let extra: Vec<_> = found.difference(&wanted).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
}

/// Function names of a library by address; without versions.
fn names_by_address(library: &Path) -> Vec<(String, String)> {
    let text = tool("nm", &["-D", "--defined-only", "--format=posix"], library);
    let name_and_address = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let function = matches!(words.get(1), Some(&"T" | &"W"));
        let name = words.first()?.split('@').next()?;
        function.then(|| (name.into(), words.get(2).unwrap_or(&"").to_string()))
    };
    text.lines().filter_map(name_and_address).collect()
}

#[test]
fn every_name_that_libcs_malloc_has_is_ours() {
    let libc = tool("cc", &["-print-file-name=libc.so.6"], "-w".as_ref());
    let names = names_by_address(Path::new(libc.trim()));
    let wanted = wanted();
    let ours = names.iter().filter(|(name, _)| wanted.contains(name.as_str()));
    let addresses: BTreeSet<_> = ours.map(|(_, address)| address).collect();
    for (name, address) in &names {
        // libc's own vfork has a second name, which is not malloc's.
        let is_malloc = addresses.contains(address) && !name.contains("vfork");
        assert!(!is_malloc || wanted.contains(name.as_str()), "{name} would reach libc's malloc");
    }
}

#[test]
fn the_imports_are_libcs() {
    let text = tool("nm", &["-D", "--undefined-only", "--format=posix"], &shared_library());
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        let weak = kind == "w" || kind == "v";
        assert!(weak || name.contains("@GLIBC_"), "{name} comes from another library");
    }
}

#[test]
fn libc_is_the_only_library_needed() {
    let text = tool("readelf", &["-dW"], &shared_library());
    for line in text.lines().filter(|line| line.contains("(NEEDED)")) {
        assert!(NEEDED.iter().any(|name| line.contains(&format!("[{name}]"))), "{line}");
    }
}

#[test]
fn the_library_cannot_be_unloaded() {
    let text = tool("readelf", &["-dW"], &shared_library());
    assert!(text.contains("NODELETE"), "rseq descriptors must outlive dlclose");
}

#[test]
fn no_text_relocations_and_no_lazy_binding() {
    let text = tool("readelf", &["-dW"], &shared_library());
    assert!(!text.contains("TEXTREL"), "text relocations");
    assert!(text.contains("NOW"), "the lazy binder needs more stack than a slow path may use");
}

#[test]
fn thread_local_memory_fits_the_static_reserve() {
    let text = tool("readelf", &["-lW"], &shared_library());
    for line in text.lines().filter(|line| line.trim_start().starts_with("TLS ")) {
        let size = line.split_whitespace().nth(5).expect("readelf prints a MemSiz");
        let size = u64::from_str_radix(size.trim_start_matches("0x"), 16).expect("a hex number");
        assert!(size <= TLS_BYTES, "{size} bytes of static TLS");
    }
}
