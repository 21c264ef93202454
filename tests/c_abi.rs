//! The C ABI as a C or C++ program meets it, beyond what `conformance.rs` asks: extensions, drains, limits.

mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use support::{EVERY_SETTING, Run, Setting, compile, has_tool, passes, scratch};

#[test]
fn every_extension_is_callable() {
    passes("every_extension_is_callable.c", &[], EVERY_SETTING);
}

#[test]
fn second_names_are_the_same_malloc() {
    passes("second_names_are_the_same_malloc.c", &[], EVERY_SETTING);
}

#[test]
fn mallinfo_follows_what_a_program_holds() {
    Run::plain(&compile("mallinfo_follows_what_a_program_holds.c", &[])).passes();
    passes("mallinfo_follows_what_a_program_holds.c", &[], EVERY_SETTING);
}

#[test]
fn malloc_info_is_xml_that_agrees_with_mallinfo() {
    if !has_tool("python3") {
        return;
    }
    let program = compile("malloc_info_agrees_with_mallinfo.c", &[]);
    let parser = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/malloc_info.py");
    for &setting in EVERY_SETTING {
        let outcome = Run::on_homenode(&program, setting).outcome();
        assert!(outcome.passed(), "{outcome:?}");
        let text = scratch("xml");
        fs::write(&text, &outcome.stdout).expect("a scratch file");
        let parsed = Command::new("python3")
            .arg(&parser)
            .args(outcome.stderr.split_whitespace())
            .stdin(File::open(&text).expect("our file"))
            .output()
            .expect("python3 runs");
        let errors = String::from_utf8_lossy(&parsed.stderr);
        assert!(parsed.status.success(), "{setting:?}: {errors}\n{}", outcome.stdout);
        fs::remove_file(text).expect("our file");
    }
}

#[test]
fn mallopt_answers_as_glibc() {
    Run::plain(&compile("mallopt_answers_as_glibc.c", &[])).passes();
    passes("mallopt_answers_as_glibc.c", &[], &[Setting::Default]);
}

#[test]
fn mallopt_keeps_free_memory() {
    passes("mallopt_keeps_free_memory.c", &[], EVERY_SETTING);
}

#[test]
fn objects_do_not_overlap() {
    passes("objects_do_not_overlap.c", &[], EVERY_SETTING);
}

#[test]
fn drains_bring_objects_home() {
    passes("drains_bring_objects_home.c", &[], EVERY_SETTING);
}

#[test]
fn an_object_of_another_node_waits_without_a_miss() {
    passes("an_object_of_another_node_waits_without_a_miss.c", &[], &[Setting::FakeNodes]);
}

#[test]
fn objects_do_not_wait_for_long_to_go_home() {
    passes("objects_do_not_wait_for_long_to_go_home.c", &[], &[Setting::FakeNodes]);
}

#[test]
fn large_blocks_freed_elsewhere_serve_again() {
    passes("large_blocks_freed_elsewhere_serve_again.c", &[], &[Setting::FakeNodes]);
}

#[test]
fn a_refused_fence_leaves_drains_working() {
    const EPERM: &str = "1";
    const ENOSYS: &str = "38";
    for errno in [EPERM, ENOSYS] {
        passes("a_refused_fence_leaves_drains_working.c", &[errno], EVERY_SETTING);
    }
}

#[test]
fn a_quiet_drain_sees_every_task() {
    passes("a_quiet_drain_sees_every_task.c", &["2"], &[Setting::Default, Setting::OwnRseq]);
}

#[test]
fn freed_memory_serves_other_sizes() {
    let program = compile("freed_memory_serves_other_sizes.c", &[]);
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).env("HOMENODE_SLICE", "64").passes();
    }
}

#[test]
fn freed_memory_is_given_back() {
    // One node: each gives back as it is called.
    passes("freed_memory_is_given_back.c", &[], &[Setting::Default, Setting::NoRseq]);
}

#[test]
fn parked_blocks_serve_again() {
    passes("parked_blocks_serve_again.c", &[], EVERY_SETTING);
}

#[test]
fn a_grown_heap_asks_for_huge_pages() {
    passes("a_grown_heap_asks_for_huge_pages.c", &[], &[Setting::Default, Setting::NoRseq]);
}

#[test]
fn a_parked_block_does_not_stay() {
    passes("a_parked_block_does_not_stay.c", &[], &[Setting::Default, Setting::NoRseq]);
}

#[test]
fn a_full_slice_takes_what_is_parked() {
    let program = compile("a_full_slice_takes_what_is_parked.c", &[]);
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).env("HOMENODE_SLICE", "64").passes();
    }
}

#[test]
fn a_growing_block_moves() {
    for refusal in ["", "refused", "old", "limited"] {
        passes("a_growing_block_moves.c", &[refusal], EVERY_SETTING);
    }
}

#[test]
fn holes_do_not_make_the_heap_grow() {
    passes("holes_do_not_make_the_heap_grow.c", &[], EVERY_SETTING);
}

#[test]
fn a_sparse_block_stays_sparse() {
    passes("a_sparse_block_stays_sparse.c", &[], EVERY_SETTING);
}

#[test]
fn running_out_gives_enomem() {
    let program = compile("running_out_gives_enomem.c", &[]);
    for &setting in EVERY_SETTING {
        Run::on_homenode("/bin/sh".as_ref(), setting)
            .args(&["-c", "ulimit -v 1500000 && exec \"$0\""])
            .args(&[&program])
            .passes();
    }
}

#[test]
fn a_tiny_address_space_is_enough_to_start() {
    Run::on_homenode("/bin/sh".as_ref(), Setting::Default)
        .args(&["-c", "ulimit -v 100000 && exec /bin/echo started"])
        .passes();
}

#[test]
fn a_small_address_space_suffices() {
    let program = compile("a_small_address_space_suffices.c", &[]);
    // Two nodes need two slices, of 32 MiB at least.
    for setting in [Setting::Default, Setting::OwnRseq, Setting::NoRseq] {
        for command in ["exec \"$0\"", "exec perl -e 1"] {
            Run::on_homenode("/bin/sh".as_ref(), setting)
                .args(&["-c", &format!("ulimit -v 65536 && {command}")])
                .args(&[&program])
                .passes();
        }
    }
}

#[test]
fn the_header_stands_alone() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("cabi/include/homenode.h");
    let languages = [
        ("cc", "-xc", "-std=c99"),
        ("cc", "-xc", "-std=c17"),
        ("c++", "-xc++", "-std=c++98"),
        ("c++", "-xc++", "-std=c++17"),
        ("c++", "-xc++", "-std=c++20"),
    ];
    for (compiler, language, standard) in languages {
        let output = Command::new(compiler)
            .args([language, standard, "-fsyntax-only"])
            .args(["-pedantic", "-Wall", "-Wextra", "-Werror"])
            .arg(&header)
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        assert!(output.status.success(), "{standard}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
