//! Each system call is made to fail in turn: null at worst, nothing lost, and all well afterwards.
//!
//! A process of its own for each call and each number: most calls are made at the start or once.
#![allow(unsafe_code, reason = "blocks are freed by hand, and vfork is written in assembler")]

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::process::{Command, exit};
use std::sync::Barrier;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;

use heap::{Appetite, Model, Verdict, agrees, is_empty};
use homenode::{Census, How};
use support::{Outcome, Run, scratch};

/// The call that is to fail in this process, and after how many others.
const FAILING: &str = "TEST_FAILING";
/// What a process answers in which no call was refused: there are no more calls of this kind.
const NONE_LEFT: i32 = 42;
/// Processes at once.
const PROCESSES: usize = 3;

type Setting = &'static [(&'static str, &'static str)];

const DEFAULT: Setting = &[];
const FAKE_NODES: Setting = &[("HOMENODE_FAKE_NODES", "2")];
const NO_RSEQ: Setting = &[("HOMENODE_RSEQ", "off"), ("HOMENODE_FAKE_NODES", "2")];
const OWN_RSEQ: Setting = &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")];
/// Named on standard error at start.
const WRONG: Setting = &[("HOMENODE_RSEQ", "maybe")];
/// Two nodes by the kernel's lists, of which it refuses to prefer the second, where the machine has one.
const REAL_NODES: Setting = &[(NODES, "0-1\n"), ("HOMENODE_SLICE", "128")];
/// What the kernel's lists of nodes are to say.
const NODES: &str = "TEST_NODES";
/// Puts that list over the kernel's, for this program and its children alone.
const PUT_LIST: &str = "set -e; f=$(mktemp); printf %s \"$TEST_NODES\" >\"$f\"
    for list in online has_memory; do mount --bind \"$f\" \"/sys/devices/system/node/$list\"; done
    rm \"$f\"; exec \"$0\" \"$@\"";

/// Fails the n-th call named `call` in a process of its own, for n from 0 to `most`, until the
/// process makes no more of them.
fn survives(test: &str, call: &str, most: usize, settings: &[Setting]) {
    if let Ok(failing) = std::env::var(FAILING) {
        let after = failing.parse().expect("a number");
        exit(body(call, after));
    }
    for setting in settings {
        let next = AtomicUsize::new(0);
        let last = AtomicUsize::new(most);
        thread::scope(|scope| {
            for _ in 0..PROCESSES {
                scope.spawn(|| one_after_another(test, &next, &last, setting));
            }
        });
        assert!(last.load(Ordering::Relaxed) > 0, "{call} is never called in {setting:?}");
    }
}

fn one_after_another(test: &str, next: &AtomicUsize, last: &AtomicUsize, setting: Setting) {
    loop {
        let after = next.fetch_add(1, Ordering::Relaxed);
        if after > last.load(Ordering::Relaxed) {
            return;
        }
        let outcome = run(test, after, setting);
        if outcome.status.code() == Some(NONE_LEFT) {
            last.fetch_min(after, Ordering::Relaxed);
        } else {
            assert!(outcome.passed(), "{test}: after {after}, in {setting:?}: {outcome:?}");
        }
    }
}

fn run(test: &str, after: usize, setting: Setting) -> Outcome {
    let program = std::env::current_exe().expect("a program has a path");
    let run = if setting.iter().any(|(name, _)| *name == NODES) {
        Run::plain("unshare".as_ref()).args(&["-rm", "sh", "-c", PUT_LIST]).args(&[&program])
    } else {
        Run::plain(&program)
    };
    let run = run.args(&[test, "--exact", "--nocapture", "--test-threads=1"]).limit(30);
    let run = run.env(FAILING, &after.to_string());
    setting.iter().fold(run, |run, (name, value)| run.env(name, value)).outcome()
}

/// The process under test; its exit code.
fn body(call: &str, after: u32) -> i32 {
    match call {
        // Memory of both nodes is to be used, so the kernel must not say that one is not allowed.
        "mbind" => assert!(homenode::fail_call("get_mempolicy", 0)),
        "munmap" => take_the_place(),
        _ => {}
    }
    assert!(homenode::fail_call(call, after), "there is a call named {call}");
    // Once is enough: what was not refused by then is not refused any more.
    let disarm =
        || assert!(homenode::fail_call(call, u32::MAX - 1), "there is a call named {call}");
    // Some calls come by chance alone: the chance is given often.
    match call {
        "futex" => (0..5).take_while(|_| refusals(call) == 0).for_each(|_| crowd()),
        // Most blocks grow in place.
        "mremap" => (0..4).for_each(|_| outgrow()),
        "getdents" => (0..20).take_while(|_| refusals(call) == 0).for_each(|_| scatter()),
        "mbind" => overflow(),
        "write" | "getrusage" => tell(),
        "vfork" => (0..3).for_each(|_| spawn()),
        _ => {}
    }
    match program(disarm) {
        Ok(()) if refusals(call) == 0 => NONE_LEFT,
        Ok(()) => 0,
        Err(fault) => {
            eprintln!("{call} fails after {after}: {fault}");
            1
        }
    }
}

/// A block grows that has a neighbour, so that its pages move, or are copied.
#[expect(unsafe_code, reason = "blocks are raw memory")]
fn outgrow() {
    const BYTES: usize = 3 << 20;
    let [block, neighbour] = [(), ()].map(|()| homenode::alloc(BYTES));
    // SAFETY: the block was just handed out, and is that long.
    unsafe { block.write_bytes(7, BYTES) };
    // SAFETY: as above.
    let usable = unsafe { homenode::usable_size(block) }.expect("it is ours");
    // SAFETY: the block is live, and `usable` long.
    let block = unsafe { homenode::realloc(block, usable, 4 * BYTES, 16) };
    // SAFETY: what was written was kept.
    let kept = unsafe { std::slice::from_raw_parts(block, BYTES) };
    assert!(kept.iter().all(|&byte| byte == 7));
    for block in [block, neighbour] {
        // SAFETY: both are live, and not used any more.
        unsafe { homenode::free(block) };
    }
}

/// So many threads at one lock that a holder is preempted now and then, and the others sleep.
fn crowd() {
    thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(|| use_pairs(60_000)))));
}

/// Threads on every CPU, and then a drain of all by looking at tasks.
fn scatter() {
    let barrier = Barrier::new(4);
    let work = || {
        barrier.wait();
        use_pairs(1_000_000);
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    homenode::drain_all(How::Quiet);
}

#[inline(never)]
fn use_pairs(count: u32) {
    for _ in 0..count {
        let block = homenode::alloc(64);
        // SAFETY: the block was just handed out, or is null.
        unsafe { homenode::free(block) };
    }
}

/// Takes a page of the address space that the allocator tries first, so that it looks elsewhere and cuts
/// off what it does not need.
fn take_the_place() {
    let here = (take_the_place as *const ()).addr();
    let below = std::ptr::without_provenance_mut((here - (1 << 39)) >> 12 << 12);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new map that replaces none.
    let page = unsafe { libc::mmap(below, 1 << 30, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
}

/// More memory than a node has: the next one opens.
fn overflow() {
    let blocks: Vec<_> = (0..80).map(|_| homenode::alloc(2 << 20)).collect();
    assert!(blocks.iter().all(|block| !block.is_null()));
    // SAFETY: the blocks were just handed out.
    blocks.into_iter().for_each(|block| unsafe { homenode::free(block) });
}

/// Statistics that are cut short are known to be.
fn tell() {
    let path = scratch("statistics");
    let file = File::create(&path).expect("a scratch file");
    let before = refusals("write");
    let told = homenode::print_stats(file.as_raw_fd());
    let text = fs::read_to_string(&path).expect("text");
    fs::remove_file(&path).expect("our file can be removed");
    assert_eq!(told, refusals("write") == before);
    assert_eq!(told, text.contains("map seams"), "{text}");
}

/// vfork(2), as libhomenode.so has it.
#[unsafe(naked)]
extern "C" fn vfork() -> i32 {
    homenode::__vfork!(set_errno)
}

static ERRNO: AtomicI32 = AtomicI32::new(0);

extern "C" fn set_errno(errno: i32) {
    ERRNO.store(errno, Ordering::Relaxed);
}

/// A vfork that is refused leaves no trace: the fast path is open after it.
fn spawn() {
    let before = refusals("vfork");
    let child = vfork();
    if child == 0 {
        use_pairs(10);
        // SAFETY: a child of vfork may end so.
        unsafe { libc::_exit(0) };
    }
    if child < 0 {
        assert_eq!(ERRNO.load(Ordering::Relaxed), libc::EAGAIN);
    } else {
        let mut status = 0;
        // SAFETY: the child is ours to wait for, and the status a local.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
    assert_eq!(child < 0, refusals("vfork") > before);
    let misses = Census::take().misses;
    use_pairs(1000);
    assert!(Census::take().misses - misses < 100, "the fast path is closed");
}

/// A program of several threads, first with the fault ahead, then without.
fn program(disarm: impl FnOnce()) -> Verdict {
    let appetite = Appetite { largest: 6 << 20, bytes: 160 << 20, blocks: 1200, may_starve: true };
    let mut main = Model::new(3, appetite);
    main.run(1200)?;
    let others: Vec<_> = (4..6)
        .map(|seed| {
            thread::spawn(move || {
                let mut model = Model::new(seed, appetite);
                model.run(400).and_then(|()| model.finish())
            })
        })
        .collect();
    for other in others {
        other.join().map_err(|_| "a thread panics")??;
    }
    agrees(main.blocks().iter())?;
    disarm();
    main.may_starve(false);
    main.run(300)?;
    agrees(main.blocks().iter())?;
    main.finish()?;
    is_empty()
}

/// Refusals of one kind, as the statistics say it.
fn refusals(call: &str) -> u64 {
    let mut buffer = [0; 1 << 16];
    let length = homenode::stats_json(&mut buffer);
    let text = std::str::from_utf8(&buffer[..length]).expect("text");
    let (_, refused) = text.split_once("\"refused\":").expect("refusals are counted");
    let (_, rest) = refused.split_once(&format!("\"{call}\":")).expect("the call is counted");
    rest.split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

macro_rules! each_call_may_fail {
    ($($test:ident: $call:literal, $most:literal, $settings:expr;)*) => {
        $(#[test]
        fn $test() {
            survives(stringify!($test), $call, $most, $settings);
        })*
    };
}

each_call_may_fail! {
    any_mmap_may_fail: "mmap", 20, &[DEFAULT, FAKE_NODES, NO_RSEQ];
    any_mremap_may_fail: "mremap", 8, &[DEFAULT, FAKE_NODES];
    any_munmap_may_fail: "munmap", 20, &[DEFAULT, FAKE_NODES];
    any_mprotect_may_fail: "mprotect", 60, &[DEFAULT, FAKE_NODES, NO_RSEQ];
    any_madvise_may_fail: "madvise", 30, &[DEFAULT, FAKE_NODES];
    any_futex_may_fail: "futex", 8, &[NO_RSEQ];
    any_rseq_may_fail: "rseq", 8, &[OWN_RSEQ];
    any_membarrier_may_fail: "membarrier", 25, &[DEFAULT, FAKE_NODES, OWN_RSEQ];
    any_getcpu_may_fail: "getcpu", 12, &[FAKE_NODES, NO_RSEQ];
    any_getpid_may_fail: "getpid", 4, &[DEFAULT];
    any_open_may_fail: "open", 20, &[DEFAULT, OWN_RSEQ];
    any_read_may_fail: "read", 20, &[DEFAULT];
    any_write_may_fail: "write", 30, &[DEFAULT, WRONG];
    any_close_may_fail: "close", 20, &[DEFAULT, OWN_RSEQ];
    any_getdents_may_fail: "getdents", 12, &[DEFAULT];
    any_affinity_may_fail: "affinity", 2, &[DEFAULT];
    any_rlimit_may_fail: "rlimit", 2, &[DEFAULT];
    any_vfork_may_fail: "vfork", 4, &[DEFAULT, OWN_RSEQ, NO_RSEQ];
    any_getrusage_may_fail: "getrusage", 4, &[DEFAULT];
}

/// Where the system lets a test change what the kernel says of nodes; the test of one slice
/// (src/region/tests.rs) is run everywhere.
#[test]
fn any_mbind_may_fail() {
    if can_pretend() {
        survives("any_mbind_may_fail", "mbind", 4, &[REAL_NODES]);
    }
}

/// As [`any_mbind_may_fail`]: a machine of one node is not asked.
#[test]
fn any_get_mempolicy_may_fail() {
    if can_pretend() {
        survives("any_get_mempolicy_may_fail", "get_mempolicy", 2, &[REAL_NODES]);
    }
}

/// True where there can be two nodes, or already are.
fn can_pretend() -> bool {
    let pretend = || Command::new("unshare").args(["-rm", "sh", "-c", PUT_LIST, "true"]).output();
    std::env::var_os(FAILING).is_some() || pretend().is_ok_and(|outcome| outcome.status.success())
}

#[test]
fn a_fault_that_cannot_be_named_ends_the_program() {
    if std::env::var_os(FAILING).is_some() {
        let block = homenode::alloc(64);
        assert!(homenode::fail_call("write", 0));
        // SAFETY: none; this is the fault.
        unsafe { homenode::free(block.wrapping_add(1)) };
        homenode::drain_all(How::Auto);
        exit(0);
    }
    let outcome = run("a_fault_that_cannot_be_named_ends_the_program", 0, DEFAULT);
    assert_eq!(outcome.signal(), Some(libc::SIGABRT), "{outcome:?}");
    assert!(!outcome.stderr.contains("homenode:"), "{outcome:?}");
}
