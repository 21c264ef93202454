//! The C ABI as a C or C++ program meets it: sizes, alignments, errno, extensions (cases P4, A1, A2, A3).

mod support;

use support::{EVERY_SETTING, Run, Setting, compile, passes};

#[test]
fn zero_sizes_follow_glibc() {
    passes("zero_sizes_follow_glibc.c", &[], EVERY_SETTING);
}

#[test]
fn overflowing_sizes_fail_with_enomem() {
    passes("overflowing_sizes_fail_with_enomem.c", &[], EVERY_SETTING);
}

#[test]
fn errno_survives_success_and_free() {
    passes("errno_survives_success_and_free.c", &[], EVERY_SETTING);
}

#[test]
fn aligned_requests_follow_glibc() {
    passes("aligned_requests_follow_glibc.c", &[], EVERY_SETTING);
}

#[test]
fn aligned_alloc_rejects_a_bad_alignment() {
    passes("aligned_alloc_rejects_a_bad_alignment.c", &[], EVERY_SETTING);
}

#[test]
fn posix_memalign_refuses_without_writing() {
    passes("posix_memalign_refuses_without_writing.c", &[], EVERY_SETTING);
}

#[test]
fn every_extension_is_callable() {
    passes("every_extension_is_callable.c", &[], EVERY_SETTING);
}

#[test]
fn calloc_zeroes_dirty_memory() {
    passes("calloc_zeroes_dirty_memory.c", &[], EVERY_SETTING);
}

#[test]
fn every_alignment_holds() {
    passes("every_alignment_holds.c", &[], EVERY_SETTING);
}

#[test]
fn usable_size_is_writable_and_stable() {
    passes("usable_size_is_writable_and_stable.c", &[], EVERY_SETTING);
}

#[test]
fn objects_do_not_overlap() {
    passes("objects_do_not_overlap.c", &[], EVERY_SETTING);
}

#[test]
fn operators_pair_up() {
    passes("operators_pair_up.cc", &[], EVERY_SETTING);
}

#[test]
fn a_failing_new_calls_the_handler() {
    passes("a_failing_new_calls_the_handler.cc", &[], EVERY_SETTING);
}

#[test]
fn drains_bring_objects_home() {
    passes("drains_bring_objects_home.c", &[], EVERY_SETTING);
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
