//! The heap checker where it is needed most: in children that fork left in the middle of everything.
#![allow(unsafe_code, reason = "fork, waitpid, kill and _exit")]

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heap::{Appetite, Model, Verdict, drain, is_empty, objects_out};
use homenode::How;

/// A child that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);
const HAMMERS: u64 = 6;

const SETTINGS: &[&[(&str, &str)]] =
    &[&[], &[("HOMENODE_FAKE_NODES", "2")], &[("HOMENODE_RSEQ", "off")]];

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn write(descriptor: i32, bytes: *const u8, length: usize) -> isize;
}

/// Runs `body` in a process of its own in each setting.
fn in_each_setting(test: &str, body: fn()) {
    support::in_each_setting(test, SETTINGS, body);
}

/// What a thread does that is to be in a slow path when another one forks.
fn hammer(seed: u64, stop: &AtomicBool) -> Verdict {
    // Runs and whole compounds: few of them fit a CPU's slab, so most calls take locks.
    let appetite = Appetite { largest: 3 << 20, bytes: 12 << 20, blocks: 40, may_starve: false };
    let mut model = Model::new(seed, appetite);
    while !stop.load(Ordering::Relaxed) {
        match seed % 3 {
            0 => model.relieve(),
            1 => runs(&mut model)?,
            _ => model.run(20)?,
        }
    }
    model.finish()
}

/// Takes and frees many blocks of one size at once: spans come and go.
fn runs(model: &mut Model) -> Verdict {
    let size = [40_000, 100_000, 20_000, 3000, 16][model.random.below(5)];
    let blocks: Vec<_> = (0..(2 << 20) / size.max(1024)).map(|_| homenode::alloc(size)).collect();
    if blocks.iter().any(|block| block.is_null()) {
        return Err(format!("no memory for {size} bytes"));
    }
    // SAFETY: each was just handed out, and is not used.
    blocks.into_iter().for_each(|block| unsafe { homenode::free(block) });
    let _ = homenode::drain_all(How::Auto);
    homenode::trim();
    Ok(())
}

/// What a child does with the heap that it got.
fn child(seed: u64) -> Verdict {
    drain()?;
    homenode::trim();
    drain()?;
    // What its lost threads held stays out; nothing else changes that number.
    let lost = objects_out()?;
    let appetite = Appetite { largest: 4 << 20, bytes: 16 << 20, blocks: 300, may_starve: false };
    let mut model = Model::new(seed, appetite);
    model.run(600)?;
    model.finish()?;
    drain()?;
    homenode::trim();
    let left = objects_out()?;
    if left == lost {
        Ok(())
    } else {
        Err(format!("{lost} objects were lost by the fork, {left} are out at the end"))
    }
}

/// Forks; the child's verdict is its exit code.
fn forked(seed: u64) -> Verdict {
    // SAFETY: the child calls what is safe in a child of a threaded program: malloc, and this allocator.
    match unsafe { fork() } {
        -1 => Err("fork is refused".to_owned()),
        0 => {
            let code = match child(seed) {
                Ok(()) => 0,
                Err(fault) => {
                    let line = format!("{fault}\n");
                    // SAFETY: the text is readable for its length.
                    unsafe { write(2, line.as_ptr(), line.len()) };
                    1
                }
            };
            // SAFETY: ends the child without a destructor of the parent's.
            unsafe { _exit(code) }
        }
        process => wait(process),
    }
}

fn wait(process: i32) -> Verdict {
    const NO_HANG: i32 = 1;
    const SIGKILL: i32 = 9;
    let end = Instant::now() + LIMIT;
    let mut status = 0;
    // SAFETY: the child is this process's own to wait for, and the status is a local.
    while unsafe { waitpid(process, &raw mut status, NO_HANG) } == 0 {
        if Instant::now() > end {
            // SAFETY: the child has not been waited for, so its number is still its own.
            unsafe { kill(process, SIGKILL) };
            // SAFETY: as above.
            unsafe { waitpid(process, &raw mut status, 0) };
            return Err("the child hangs".to_owned());
        }
        thread::yield_now();
    }
    if status == 0 { Ok(()) } else { Err(format!("the child ends with status {status:#x}")) }
}

fn fork_amid(rounds: u64) -> Verdict {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let hammers: Vec<_> = (0..HAMMERS)
            .map(|seed| {
                scope.spawn({
                    let stop = &stop;
                    move || hammer(seed + 1, stop)
                })
            })
            .collect();
        let mut own = Model::new(
            99,
            Appetite { largest: 100 << 10, bytes: 1 << 20, blocks: 50, may_starve: false },
        );
        let forks = (0..rounds).try_for_each(|round| own.run(30).and_then(|()| forked(round + 1)));
        stop.store(true, Ordering::Relaxed);
        let ends = hammers
            .into_iter()
            .try_for_each(|hammer| hammer.join().map_err(|_| "a thread panics".to_owned())?);
        forks.and(ends).and_then(|()| own.finish())
    })?;
    is_empty()
}

fn holds(verdict: Verdict) {
    if let Err(fault) = verdict {
        panic!("{fault}");
    }
}

#[test]
fn a_child_rebuilds_what_its_lost_threads_had_in_hand() {
    in_each_setting("a_child_rebuilds_what_its_lost_threads_had_in_hand", || holds(fork_amid(25)));
}

#[test]
fn a_fork_is_noticed_where_no_page_can_be_wiped() {
    in_each_setting("a_fork_is_noticed_where_no_page_can_be_wiped", || {
        // The scratch buffer comes first, then the page; a refused advice is the older kernels' answer.
        assert!(homenode::fail_call("madvise", 0));
        holds(fork_amid(12));
    });
}

#[test]
fn a_fork_is_noticed_where_no_page_can_be_had() {
    in_each_setting("a_fork_is_noticed_where_no_page_can_be_had", || {
        assert!(homenode::fail_call("mmap", 1));
        holds(fork_amid(12));
    });
}

#[test]
fn a_child_of_a_child_keeps_the_heap_too() {
    in_each_setting("a_child_of_a_child_keeps_the_heap_too", || {
        let mut model = Model::new(1, Appetite::WIDE);
        holds(model.run(2000));
        for seed in 0..5 {
            // SAFETY: this process has no second thread that uses the heap.
            let process = unsafe { fork() };
            if process == 0 {
                holds(model.run(300));
                continue;
            }
            holds(model.finish().and_then(|()| is_empty()));
            if seed > 0 {
                let verdict = wait(process);
                // SAFETY: ends a child without a destructor of the parent's.
                unsafe { _exit(i32::from(verdict.is_err())) };
            }
            return holds(wait(process));
        }
        let verdict = model.finish().and_then(|()| is_empty());
        // SAFETY: as above.
        unsafe { _exit(i32::from(verdict.is_err())) };
    });
}
