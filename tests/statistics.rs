//! The statistics are true: what a program holds is found in them, class by class, and the JSON is JSON.
#![allow(unsafe_code, reason = "blocks are raw memory")]

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use heap::{Appetite, Model, drain};
use serde_json::Value;
use support::{EVERY_SETTING, Run, compile};

const FULL: (&str, &str) = ("HOMENODE_STATS", "full");
const SETTINGS: &[&[(&str, &str)]] = &[
    &[],
    &[("HOMENODE_FAKE_NODES", "2")],
    &[("HOMENODE_RSEQ", "off")],
    &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")],
    &[FULL],
    &[FULL, ("HOMENODE_FAKE_NODES", "2")],
];

fn statistics() -> Value {
    let mut buffer = vec![0; 1 << 16];
    let length = homenode::stats_json(&mut buffer);
    serde_json::from_slice(&buffer[..length]).expect("the statistics are JSON")
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or_else(|| panic!("{name} is no number of {of}"))
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().unwrap_or_else(|| panic!("{name} is no list of {of}"))
}

fn sum(rows: &[Value], name: &str) -> u64 {
    rows.iter().map(|row| number(row, name)).sum()
}

/// Objects of a class that neither a span nor a CPU nor a rack has: the program's.
fn held(all: &Value, size: u64) -> u64 {
    let mut classes = list(all, "classes").iter();
    let Some(class) = classes.find(|class| number(class, "size") == size) else { return 0 };
    assert_eq!(number(class, "out"), number(class, "taken") - number(class, "returned"), "{class}");
    number(class, "out") - number(class, "cached") - number(class, "racked")
}

fn release(blocks: impl IntoIterator<Item = *mut u8>) {
    // SAFETY: each was handed out, and is not used any more.
    blocks.into_iter().for_each(|block| unsafe { homenode::free(block) });
}

#[test]
fn what_a_program_holds_is_found_in_its_classes() {
    support::in_each_setting("what_a_program_holds_is_found_in_its_classes", SETTINGS, || {
        let wanted = [(16, 700), (48, 1), (640, 1234), (5120, 301), (40_960, 33), (1 << 20, 3)];
        let mut blocks = Vec::new();
        for (size, count) in wanted {
            blocks.extend((0..count).map(|_| homenode::alloc(size)));
        }
        let large = [3 << 20, (5 << 20) + 4096].map(homenode::alloc);
        let all = statistics();
        for (size, count) in wanted {
            assert_eq!(held(&all, size as u64), count, "{size}: {all}");
        }
        assert_eq!([number(&all, "large"), number(&all, "large_bytes")], [2, (8 << 20) + 4096]);
        release(blocks.into_iter().chain(large));
        drain().expect("drains come to an end");
        let all = statistics();
        for (size, _) in wanted {
            assert_eq!(held(&all, size as u64), 0, "{size}: {all}");
        }
        homenode::trim();
        let all = statistics();
        let names = ["out", "out_bytes", "spans", "runs", "refcounts", "large", "cached", "racked"];
        assert!(names.iter().all(|name| number(&all, name) == 0), "{all}");
        assert_eq!(number(&all, "taken"), number(&all, "returned"));
    });
}

#[test]
fn the_parts_of_each_sum_are_told_too() {
    support::in_each_setting("the_parts_of_each_sum_are_told_too", SETTINGS, || {
        let appetite =
            Appetite { largest: 3 << 20, bytes: 32 << 20, blocks: 2000, may_starve: false };
        let mut model = Model::new(5, appetite);
        model.run(20_000).expect("the model holds");
        let all = statistics();
        let (classes, slabs) = (list(&all, "classes"), list(&all, "slabs"));
        for name in ["spans", "out", "refills", "taken", "returned", "racked"] {
            assert_eq!(sum(classes, name), number(&all, name), "{name}: {all}");
        }
        let bytes: u64 = classes.iter().map(|row| number(row, "out") * number(row, "size")).sum();
        assert_eq!(bytes, number(&all, "out_bytes"));
        for name in ["away", "misses", "drained", "sent_home"] {
            assert_eq!(sum(slabs, name), number(&all, name), "{name}: {all}");
        }
        let [cached, away] = ["cached", "away"].map(|name| sum(slabs, name));
        assert_eq!(cached + away, number(&all, "cached"));
        assert_eq!(cached, sum(classes, "cached"));
        assert_eq!(sum(slabs, "bytes"), number(&all, "slab_bytes"));
        assert_eq!(number(&all, "runs"), number(&all, "refcounts"));
        assert!(number(&all, "page_faults") > 0);
        model.finish().expect("the model holds");
    });
}

#[test]
fn hits_and_misses_are_all_calls_in_full_mode() {
    const PAIRS: usize = 10_000;
    support::in_each_setting(
        "hits_and_misses_are_all_calls_in_full_mode",
        &[&[FULL], &[FULL, ("GLIBC_TUNABLES", "glibc.pthread.rseq=0")]],
        || {
            let before = statistics();
            for size in 0..PAIRS {
                release([homenode::alloc(size % 1000)]);
            }
            let after = statistics();
            let [hits, misses] =
                ["hits", "misses"].map(|name| number(&after, name) - number(&before, name));
            assert_eq!(hits + misses, 2 * PAIRS as u64);
            assert!(misses < 1000, "{misses} misses");
        },
    );
}

#[test]
fn hits_are_not_told_where_they_are_not_counted() {
    let none = |rows: &[Value]| rows.iter().all(|row| row.get("hits").is_none());
    release([homenode::alloc(64)]);
    let all = statistics();
    assert!(all.get("hits").is_none() && none(list(&all, "slabs")), "{all}");
}

#[test]
fn objects_that_go_home_are_counted() {
    let settings: &[&[(&str, &str)]] = &[&[("HOMENODE_FAKE_NODES", "2")]];
    support::in_each_setting("objects_that_go_home_are_counted", settings, || {
        const OBJECTS: usize = 2000;
        let run_on = |cpu| {
            // SAFETY: a set of CPUs is plain bits, and zero is none.
            let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: CPU 0 and CPU 1 are in every set's range.
            unsafe { libc::CPU_SET(cpu, &mut one) };
            // SAFETY: the set is a local.
            unsafe { libc::sched_setaffinity(0, size_of_val(&one), &raw const one) == 0 }
        };
        if !run_on(0) {
            return;
        }
        let blocks: Vec<_> = (0..OBJECTS).map(|_| homenode::alloc(64)).collect();
        if !run_on(1) {
            return;
        }
        release(blocks);
        let all = statistics();
        let [away, sent] = ["away", "sent_home"].map(|name| number(&all, name));
        assert_eq!(away + sent, OBJECTS as u64, "{all}");
        assert!(sent > away && away > 0, "{all}");
    });
}

#[test]
fn a_running_program_may_be_asked_at_any_moment() {
    support::in_each_setting("a_running_program_may_be_asked_at_any_moment", SETTINGS, || {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 1..=4 {
                let stop = &stop;
                scope.spawn(move || {
                    let appetite = Appetite {
                        largest: 3 << 20,
                        bytes: 8 << 20,
                        blocks: 400,
                        may_starve: false,
                    };
                    let mut model = Model::new(seed, appetite);
                    while !stop.load(Ordering::Relaxed) {
                        model.run(50).expect("the model holds");
                        model.relieve();
                    }
                    model.finish().expect("the model holds");
                });
            }
            for _ in 0..150 {
                let all = statistics();
                // What the slabs of a few CPUs can hold at most, whenever they are looked at.
                assert!(number(&all, "cached") < 1 << 20, "{all}");
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn a_short_buffer_gets_the_start_of_the_text() {
    release([homenode::alloc(64)]);
    let mut whole = vec![0; 1 << 16];
    let length = homenode::stats_json(&mut whole);
    let fixed = whole.windows(11).position(|bytes| bytes == b"\"compounds\"").expect("counts");
    for short in 0..fixed {
        let mut buffer = vec![b'#'; short + 1];
        assert!(homenode::stats_json(&mut buffer[..short]) >= length.min(fixed));
        assert_eq!(buffer[..short], whole[..short]);
        assert_eq!(buffer[short], b'#');
    }
}

#[test]
fn statistics_allocate_nothing() {
    let program = compile("statistics_allocate_nothing.c", &[]);
    for &setting in EVERY_SETTING {
        Run::on_homenode(&program, setting).passes();
        Run::on_homenode(&program, setting).env(FULL.0, FULL.1).passes();
    }
}
