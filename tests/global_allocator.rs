//! A Rust program on `HomeNode`: this whole test binary allocates through it.

use std::collections::HashMap;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use homenode::HomeNode;

#[global_allocator]
static HEAP: HomeNode = HomeNode::new();

#[repr(align(128))]
struct Wide(u64);

fn is_aligned(items: &[Wide]) -> bool {
    items.as_ptr().addr().is_multiple_of(align_of::<Wide>())
}

#[test]
fn a_vec_of_wide_items_grows_aligned() {
    let mut items = Vec::new();
    for n in 0..1_000_000 {
        items.push(Wide(n));
        assert!(!n.is_power_of_two() || is_aligned(&items), "at {n}");
    }
    assert!(is_aligned(&items));
    assert!(items.iter().zip(0..).all(|(item, n)| item.0 == n));
    items.truncate(1000);
    items.shrink_to_fit();
    assert!(is_aligned(&items));
    assert!(items.iter().zip(0..).all(|(item, n)| item.0 == n));
}

#[test]
fn large_vecs_that_grow_side_by_side_keep_their_items() {
    let mut vecs: [Vec<u64>; 4] = Default::default();
    for n in 0..3_000_000 {
        for (which, items) in vecs.iter_mut().enumerate() {
            items.push(n ^ which as u64);
        }
    }
    for (which, items) in vecs.iter_mut().enumerate() {
        assert!(items.iter().zip(0..).all(|(&item, n)| item == n ^ which as u64), "{which}");
        items.truncate(200_000);
        items.shrink_to_fit();
        assert!(items.iter().zip(0..).all(|(&item, n)| item == n ^ which as u64), "{which}");
    }
}

#[test]
fn zeroed_memory_is_zero_after_dirty_frees() {
    for size in [1_usize, 8, 100, 4096, 40_000, 300_000, 3_000_000] {
        for _ in 0..20 {
            let mut bytes = vec![0_u8; size];
            assert!(bytes.iter().all(|&byte| byte == 0), "{size}");
            bytes.fill(0xdb);
        }
    }
}

#[test]
fn maps_and_strings_survive_threads() {
    let work = |seed: usize| {
        let mut map = HashMap::new();
        for n in 0..20_000 {
            let key = n * seed % 3000;
            map.entry(key).or_insert_with(String::new).push_str(&n.to_string());
            if n % 7 == 0 {
                map.remove(&(key / 2));
            }
        }
        map.values().map(String::len).sum::<usize>()
    };
    let alone: Vec<_> = (1..=6).map(work).collect();
    let threads: Vec<_> = (1..=6).map(|seed| thread::spawn(move || work(seed))).collect();
    let together: Vec<_> =
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert_eq!(alone, together);
}

#[test]
fn objects_cross_threads_whole() {
    let (sender, receiver) = mpsc::channel::<Box<[u64]>>();
    let senders: Vec<_> = (0..4_u64)
        .map(|id| {
            let sender = sender.clone();
            thread::spawn(move || {
                for n in 0..5000 {
                    let length = usize::try_from(n % 600).expect("small") + 1;
                    sender.send(vec![id << 32 | n; length].into()).expect("the receiver lives");
                }
            })
        })
        .collect();
    drop(sender);
    let mut counts = [0_u32; 4];
    for words in receiver {
        assert!(words.iter().all(|&word| word == words[0]));
        let id = usize::try_from(words[0] >> 32).expect("one of four");
        counts[id] += 1;
    }
    assert_eq!(counts, [5000; 4]);
    assert!(senders.into_iter().all(|thread| thread.join().is_ok()));
}

#[test]
fn threads_that_exit_leave_nothing_behind() {
    for round in 0..300_usize {
        let text = thread::spawn(move || "x".repeat(round * 10)).join().expect("no panic");
        assert_eq!(text.len(), round * 10);
    }
}

#[test]
fn children_are_spawned_amid_churn() {
    let churn =
        thread::spawn(|| (0..200_000_usize).map(|n| vec![1_u8; n % 5000 + 1].len()).sum::<usize>());
    for n in 0..40 {
        let output = Command::new("/bin/echo").arg(n.to_string()).output().expect("echo runs");
        assert!(output.status.success());
        assert_eq!(output.stdout, format!("{n}\n").into_bytes());
    }
    assert!(churn.join().expect("no panic") > 0);
}

#[test]
fn no_malloc_symbol_enters_the_program() {
    let program = std::env::current_exe().expect("a program has a path");
    let output = Command::new("nm").arg("--defined-only").arg(program).output().expect("nm runs");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    for name in names {
        let taken = ["malloc", "free", "calloc", "realloc", "posix_memalign", "_Znwm", "_ZdlPv"];
        assert!(!taken.contains(&name), "{name} is defined in a program that wanted the crate");
    }
}
