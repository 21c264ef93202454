//! Forks, threads, signals and exits (cases F1 to F6). `TEST_FORKS` lengthens the fork tests.

mod support;

use support::{EVERY_SETTING, Run, Setting, compile, number, passes};

const MOST: &[Setting] = &[Setting::Default, Setting::FakeNodes, Setting::NoRseq];

/// The full count in the default setting, a quarter of it in the others.
fn forks(source: &str, rest: &[&str]) {
    let program = compile(source, &[]);
    let full: u32 = number("TEST_FORKS", 200).parse().expect("TEST_FORKS is a number");
    for &setting in EVERY_SETTING {
        let count = if matches!(setting, Setting::Default) { full } else { full / 4 };
        Run::on_homenode(&program, setting)
            .args(&[count.to_string()])
            .args(rest)
            .limit(120 + u64::from(full) / 4)
            .passes();
    }
}

#[test]
fn a_fork_amid_churn_does_not_hang() {
    forks("a_fork_amid_churn_does_not_hang.c", &[]);
}

#[test]
fn a_fork_amid_stdio_does_not_hang() {
    forks("a_fork_amid_stdio_does_not_hang.c", &[]);
}

#[test]
fn a_fork_from_a_handler_does_not_hang() {
    forks("a_fork_from_a_handler_does_not_hang.c", &["2"]);
}

#[test]
fn a_fork_from_a_handler_of_a_single_thread_does_not_hang() {
    forks("a_fork_from_a_handler_does_not_hang.c", &["0"]);
}

#[test]
fn handlers_may_allocate() {
    passes("handlers_may_allocate.c", &["1.5", "3", "150"], EVERY_SETTING);
}

#[test]
fn destructors_may_allocate() {
    passes("destructors_may_allocate.c", &[], EVERY_SETTING);
}

#[test]
fn a_vfork_child_may_allocate() {
    passes("a_vfork_child_may_allocate.c", &["100"], EVERY_SETTING);
}

#[test]
fn a_killed_vfork_child_leaves_the_parent_whole() {
    passes("a_killed_vfork_child_leaves_the_parent_whole.c", &["madvise"], EVERY_SETTING);
    passes("a_killed_vfork_child_leaves_the_parent_whole.c", &["mprotect"], EVERY_SETTING);
}

#[test]
fn a_vfork_after_a_killed_child_does_not_hang() {
    passes("a_vfork_after_a_killed_child_does_not_hang.c", &["madvise"], EVERY_SETTING);
    passes("a_vfork_after_a_killed_child_does_not_hang.c", &["mprotect"], EVERY_SETTING);
}

#[test]
fn a_drain_in_a_vfork_child_leaves_the_heap_whole() {
    passes("a_drain_in_a_vfork_child_leaves_the_heap_whole.c", &[], EVERY_SETTING);
}

#[test]
fn a_refused_vfork_leaves_no_trace() {
    passes("a_refused_vfork_leaves_no_trace.c", &[], EVERY_SETTING);
}

#[test]
fn a_vfork_may_come_first() {
    passes("a_vfork_may_come_first.c", &[], EVERY_SETTING);
}

#[test]
fn a_big_process_spawns_fast() {
    passes("a_big_process_spawns_fast.c", &[], EVERY_SETTING);
}

#[test]
fn a_fork_beside_a_vfork_is_fast() {
    passes("a_fork_beside_a_vfork_is_fast.c", &[], EVERY_SETTING);
}

#[test]
fn a_grandchild_after_a_lost_lock_does_not_hang() {
    passes("a_grandchild_after_a_lost_lock_does_not_hang.c", &["madvise"], EVERY_SETTING);
    passes("a_grandchild_after_a_lost_lock_does_not_hang.c", &["mprotect"], EVERY_SETTING);
}

#[test]
fn storms_of_handlers_do_not_leak() {
    passes("storms_of_handlers_do_not_leak.c", &[], EVERY_SETTING);
}

#[test]
fn a_fifo_thread_makes_progress() {
    passes("a_fifo_thread_makes_progress.c", &[], MOST);
}

#[test]
fn threads_come_and_go() {
    passes("threads_come_and_go.c", &[&number("TEST_THREADS", 8000)], EVERY_SETTING);
}

#[test]
fn a_small_signal_stack_suffices() {
    let program = compile("a_small_signal_stack_suffices.c", &[]);
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).env("LD_BIND_NOW", "1").passes();
    }
}

#[test]
fn a_slow_path_fits_a_kibibyte() {
    let program = compile("a_slow_path_fits_a_kibibyte.c", &[]);
    for way in ["malloc", "calloc", "realloc", "line", "page", "huge", "new", "resize"] {
        for &setting in EVERY_SETTING {
            // The loader's own work at a first call through the PLT is not ours.
            Run::on_homenode(&program, setting).args(&[way]).env("LD_BIND_NOW", "1").passes();
        }
    }
}

#[test]
fn a_request_without_memory_fits_a_kibibyte() {
    let program = compile("a_request_without_memory_fits_a_kibibyte.c", &[]);
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting)
            .env("HOMENODE_SLICE", "64")
            .env("LD_BIND_NOW", "1")
            .passes();
    }
}

#[test]
fn a_small_thread_stack_suffices() {
    passes("a_small_thread_stack_suffices.c", &[], EVERY_SETTING);
}

#[test]
fn free_of_null_may_come_first() {
    passes("free_of_null_may_come_first.c", &[], EVERY_SETTING);
}

#[test]
fn malloc_may_come_before_constructors() {
    passes("malloc_may_come_before_constructors.c", &[], EVERY_SETTING);
}
