//! Every system call of a long run is made to fail, one at a time and many in a row: null at worst, what is
//! live keeps its contents, the heap's records agree, and all is well when the fault is gone.
//!
//! The program is walked in short stretches.  Before each one, a child of fork counts the calls that the
//! stretch makes, and then a child for each of them runs it with that call refused: so the walk itself
//! meets no fault, and each child starts from where the program has come to, in a few milliseconds.
//!
//! A stretch is run on one CPU, the next one on another, and a thread of it is gone from the system's list
//! before the program goes on: so each child makes the calls that were counted, and every one is refused.
#![allow(unsafe_code, reason = "fork, wait, affinity, and a page that is shared with children")]

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use heap::{Appetite, Model, Verdict, agrees, is_empty};
use homenode::How;
use support::in_each_setting_within;

/// The kinds of system call.
const CALLS: [&str; 20] = [
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
    "mbind",
    "get_mempolicy",
    "futex",
    "rseq",
    "membarrier",
    "getcpu",
    "getpid",
    "open",
    "read",
    "write",
    "close",
    "getdents",
    "affinity",
    "rlimit",
    "mremap",
    "vfork",
];
/// Operations that are walked between two forks.
const STRETCH: usize = 50;
/// Stretches from one look at the statistics to the next: each is some 150 writes.
const STATISTICS_EVERY: usize = 256;
/// Operations after the fault is gone.
const AFTERWARDS: usize = 20;
/// Children at once.
const CHILDREN: usize = 3;
/// What a child answers that never came to the call that was to fail.
const NOT_MET: i32 = 42;
/// CPUs that stretches take turns on, at most: as many as the model drains.
const CPUS: usize = 4;
/// A number of calls that no stretch makes.
const MANY: u32 = 1 << 30;
/// Calls that fail in a row, too, for the rest of a stretch: those that a heap lives on.
const LASTING: [&str; 6] = ["mmap", "munmap", "mprotect", "madvise", "mremap", "membarrier"];

const APPETITE: Appetite =
    Appetite { largest: 3 << 20, bytes: 12 << 20, blocks: 300, may_starve: false };

/// Which call of which stretch fails, and how many after it.
#[derive(Clone, Copy, Debug)]
struct Point {
    stretch: usize,
    call: &'static str,
    after: u32,
    times: u32,
}

/// The program, and the children that try it.
struct Walk {
    model: Model,
    stretch: usize,
    /// Calls by kind, as a child has counted them.
    counts: &'static [AtomicU32; CALLS.len()],
    /// CPUs that stretches take turns on.
    cpus: Vec<usize>,
    running: Vec<(libc::pid_t, Point)>,
    /// Points tried, by kind.
    points: [usize; CALLS.len()],
}

/// A page of zeros that children share with their parent.
fn shared<T>() -> &'static T {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new map at an address that the kernel chooses.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the map stays, and zeros are atomic words.
    unsafe { &*page.cast::<T>() }
}

/// The first CPUs that this thread may run on.
fn usable_cpus() -> Vec<usize> {
    let mut set = cpu_set([]);
    // SAFETY: the set is written for its length.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    assert_eq!(got, 0);
    let may = |cpu: &usize| {
        // SAFETY: the number is below the set's length.
        unsafe { libc::CPU_ISSET(*cpu, &set) }
    };
    (0..size_of_val(&set) * 8).filter(may).take(CPUS).collect()
}

fn cpu_set(cpus: impl IntoIterator<Item = usize>) -> libc::cpu_set_t {
    // SAFETY: a set is an array of words.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: CPU numbers of `usable_cpus` are below the set's length.
    cpus.into_iter().for_each(|cpu| unsafe { libc::CPU_SET(cpu, &mut set) });
    set
}

/// Keeps this thread, and those it makes, on one CPU.
fn stay_on(cpu: usize) {
    let set = cpu_set([cpu]);
    // SAFETY: the set is read for its length.
    let set = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(set, 0);
}

/// Runs `program` in a thread; afterwards the system knows of it no more.
fn in_a_thread(program: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
    // SAFETY: gettid has no arguments and cannot fail.
    let body = move || (unsafe { libc::gettid() }, program());
    let (id, verdict) = thread::spawn(body).join().map_err(|_| "a thread panics")?;
    // A join may return a moment before the thread is gone, and drains look at each task.
    // SAFETY: signal 0 is none.
    while unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), id, 0) } == 0 {
        thread::yield_now();
    }
    verdict
}

/// Runs a stretch: random calls, and now and then a thread that comes and goes, or statistics.
fn walk(model: &mut Model, stretch: usize) -> Verdict {
    model.run(STRETCH)?;
    if stretch.is_multiple_of(16) {
        let seed = u64::try_from(stretch).expect("small");
        let appetite = Appetite { blocks: 40, may_starve: true, ..APPETITE };
        let program = move || {
            let mut model = Model::new(seed, appetite);
            model.run(60).and_then(|()| model.finish())
        };
        in_a_thread(program)?;
    }
    if stretch.is_multiple_of(STATISTICS_EVERY) {
        let nowhere = File::options().write(true).open("/dev/null").map_err(|_| "no /dev/null")?;
        // Cut short where a write is refused.
        let _ = homenode::print_stats(nowhere.as_raw_fd());
    }
    Ok(())
}

impl Walk {
    fn new() -> Self {
        Self {
            model: Model::new(11, APPETITE),
            stretch: 0,
            counts: shared(),
            cpus: usable_cpus(),
            running: Vec::new(),
            points: [0; CALLS.len()],
        }
    }

    /// Runs `body` in a child of fork; its id.
    fn fork(&mut self, body: impl FnOnce(&mut Self) -> Result<i32, String>) -> libc::pid_t {
        // SAFETY: the other threads of this process are idle, and the child ends below.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "no more processes");
        if child == 0 {
            if self.stretch > 0 {
                // The allocator notices that this is another process, by a call that the walk does not make.
                let _ = homenode::drain_cpu(u32::MAX, How::Quiet);
            }
            let answer = body(self).unwrap_or_else(|fault| {
                eprintln!("{fault}");
                1
            });
            // SAFETY: a child of fork may end so.
            unsafe { libc::_exit(answer) };
        }
        child
    }

    /// Counts the calls of the next stretch, in a child.
    fn scout(&mut self) {
        let child = self.fork(|walk| {
            for call in CALLS {
                assert!(homenode::fail_call(call, MANY));
            }
            self::walk(&mut walk.model, walk.stretch)?;
            for (call, count) in CALLS.iter().zip(walk.counts) {
                let left = homenode::calls_until_failure(call).unwrap_or(0);
                count.store(MANY - left, Ordering::Relaxed);
            }
            Ok(0)
        });
        assert_eq!(status_of(child), 0, "stretch {} without a fault", self.stretch);
    }

    /// Tries the next stretch with each of its calls refused, and then walks it.
    fn step(&mut self) -> Verdict {
        stay_on(self.cpus[self.stretch % self.cpus.len()]);
        self.scout();
        for (call, count) in CALLS.into_iter().zip(self.counts) {
            for after in 0..count.load(Ordering::Relaxed) {
                let mut point = Point { stretch: self.stretch, call, after, times: 1 };
                self.attempt(point);
                if LASTING.contains(&call) {
                    point.times = MANY;
                    self.attempt(point);
                }
            }
        }
        walk(&mut self.model, self.stretch)?;
        self.stretch += 1;
        Ok(())
    }

    fn attempt(&mut self, point: Point) {
        if self.running.len() >= CHILDREN {
            self.await_one();
        }
        let child = self.fork(|walk| {
            walk.model.may_starve(true);
            assert!(homenode::fail_calls(point.call, point.after, point.times));
            self::walk(&mut walk.model, point.stretch)?;
            let left = homenode::calls_until_failure(point.call);
            assert!(homenode::fail_call(point.call, MANY));
            agrees(walk.model.blocks().iter())?;
            walk.model.may_starve(false);
            walk.model.run(AFTERWARDS)?;
            walk.model.finish()?;
            is_empty()?;
            // In a streak the next one is to fail.
            Ok(if left.unwrap_or(0) == 0 { 0 } else { NOT_MET })
        });
        self.running.push((child, point));
        let kind = CALLS.iter().position(|&call| call == point.call).expect("a kind");
        self.points[kind] += 1;
    }

    fn await_one(&mut self) {
        let (child, point) = self.running.remove(0);
        let status = status_of(child);
        let is_met = !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != NOT_MET;
        assert!(is_met, "{point:?}: the child took another way");
        assert_eq!(status, 0, "{point:?}: {status:#x}");
    }
}

/// The wait status of a child.
fn status_of(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the child is ours to wait for, and the status a local.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

fn every_call_fails_once(operations: usize) {
    let started = Instant::now();
    let mut walk = Walk::new();
    for _ in 0..operations / STRETCH {
        walk.step().expect("the walk itself meets no fault");
    }
    while !walk.running.is_empty() {
        walk.await_one();
    }
    agrees(walk.model.blocks().iter()).expect("the walk itself meets no fault");
    let tried: Vec<_> = CALLS.iter().zip(walk.points).filter(|(_, count)| *count > 0).collect();
    let sum: usize = walk.points.iter().sum();
    let seconds = started.elapsed().as_secs_f32();
    eprintln!("{operations} operations: {sum} points in {seconds:.0} s: {tried:?}");
}

/// Processes that run more than this on a machine that others use, too, hang.
const SECONDS: u64 = 900;

/// Tells what was tried, past the test harness, which keeps what tests print.
fn tell(said: &str) {
    let text =
        said.lines().filter(|line| line.contains(" points ")).map(|line| format!("{line}\n"));
    std::io::stderr().write_all(text.collect::<String>().as_bytes()).expect("standard error");
}

#[test]
fn every_call_of_a_long_run_may_fail() {
    const TEST: &str = "every_call_of_a_long_run_may_fail";
    tell(&in_each_setting_within(SECONDS, TEST, &[&[]], || every_call_fails_once(100_000)));
}

#[test]
fn every_call_may_fail_on_two_nodes_and_without_caches() {
    const TEST: &str = "every_call_may_fail_on_two_nodes_and_without_caches";
    let nodes: &[_] = &[("HOMENODE_FAKE_NODES", "2")];
    let slow: &[_] = &[("HOMENODE_FAKE_NODES", "2"), ("HOMENODE_RSEQ", "off")];
    let body = || every_call_fails_once(1000);
    tell(&in_each_setting_within(SECONDS, TEST, &[nodes, slow], body));
}
