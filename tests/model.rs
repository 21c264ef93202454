//! Random programs against a model of their blocks, and the whole heap against all models.

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::sync::{Barrier, Mutex};
use std::thread;

use heap::{Appetite, Block, Model, Random, Verdict, agrees, is_empty, objects_out, release};

const SETTINGS: &[&[(&str, &str)]] = &[
    &[],
    &[("HOMENODE_FAKE_NODES", "2")],
    &[("HOMENODE_RSEQ", "off")],
    &[("HOMENODE_RSEQ", "off"), ("HOMENODE_FAKE_NODES", "2")],
    &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0"), ("HOMENODE_FAKE_NODES", "3")],
];

/// Runs `body` in a process of its own in each setting.
fn in_each_setting(test: &str, body: fn()) {
    support::in_each_setting(test, SETTINGS, body);
}

fn holds(verdict: Verdict) {
    if let Err(fault) = verdict {
        panic!("{fault}");
    }
}

#[test]
fn a_long_program_of_one_thread_keeps_its_blocks() {
    in_each_setting("a_long_program_of_one_thread_keeps_its_blocks", || {
        for seed in 1..=2 {
            let mut model = Model::new(seed, Appetite::WIDE);
            for _ in 0..15 {
                holds(model.run(600));
                holds(agrees(model.blocks().iter()));
            }
            holds(model.finish());
            holds(is_empty());
        }
    });
}

#[test]
fn small_objects_alone_leave_nothing() {
    in_each_setting("small_objects_alone_leave_nothing", || {
        let appetite =
            Appetite { largest: 4096, bytes: 32 << 20, blocks: 20_000, may_starve: false };
        let mut model = Model::new(77, appetite);
        for _ in 0..10 {
            holds(model.run(15_000));
            holds(agrees(model.blocks().iter()));
        }
        holds(model.finish());
        holds(is_empty());
    });
}

/// One thread's part of a program of several: it runs, passes blocks on, and waits at quiet points.
fn play(seed: u64, shared: &Stage) -> Verdict {
    let mut model = Model::new(
        seed,
        Appetite { bytes: 24 << 20, blocks: 1500, largest: 6 << 20, may_starve: false },
    );
    let mut verdict = Ok(());
    for _ in 0..ROUNDS {
        // A fault is told at the end: the others wait at the barriers.
        verdict = verdict.and_then(|()| exchange(&mut model, shared));
        shared.meet.wait();
        lock(&shared.held).extend_from_slice(model.blocks());
        if shared.meet.wait().is_leader() {
            let mut held = lock(&shared.held);
            let passed = lock(&shared.passed);
            verdict = verdict.and_then(|()| agrees(held.iter().chain(passed.iter())));
            held.clear();
        }
        shared.meet.wait();
    }
    verdict.and_then(|()| model.finish())
}

fn exchange(model: &mut Model, shared: &Stage) -> Verdict {
    for _ in 0..STEPS {
        model.step()?;
        match model.random.below(4) {
            0 => {
                if let Some(block) = model.part_with().transpose()? {
                    lock(&shared.passed).push(block);
                }
            }
            1 => {
                let taken = lock(&shared.passed).pop();
                if let Some(block) = taken {
                    take_over(model, block)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Another thread's block: kept for later, or freed at once.
fn take_over(model: &mut Model, block: Block) -> Verdict {
    if model.random.below(2) == 0 {
        release(&block);
        return Ok(());
    }
    model.admit(block)
}

const ROUNDS: usize = 8;
const STEPS: usize = 1500;

/// What the threads of one program share.
struct Stage {
    meet: Barrier,
    /// Blocks on their way from one thread to another.
    passed: Mutex<Vec<Block>>,
    /// All blocks that threads hold, at a quiet point.
    held: Mutex<Vec<Block>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with it")
}

#[test]
fn blocks_that_cross_threads_stay_whole() {
    in_each_setting("blocks_that_cross_threads_stay_whole", || {
        let threads = 4;
        let stage =
            Stage { meet: Barrier::new(threads), passed: Mutex::default(), held: Mutex::default() };
        thread::scope(|scope| {
            let players: Vec<_> = (1..=4)
                .map(|seed| {
                    scope.spawn({
                        let stage = &stage;
                        move || play(seed, stage)
                    })
                })
                .collect();
            for player in players {
                holds(player.join().expect("no panic"));
            }
        });
        for block in lock(&stage.passed).drain(..) {
            release(&block);
        }
        holds(is_empty());
    });
}

#[test]
fn threads_that_come_and_go_leave_nothing() {
    in_each_setting("threads_that_come_and_go_leave_nothing", || {
        let appetite =
            Appetite { largest: 200 << 10, bytes: 8 << 20, blocks: 500, may_starve: false };
        for generation in 0..10 {
            let threads: Vec<_> = (0..6)
                .map(|number| {
                    thread::spawn(move || {
                        let mut model = Model::new(generation * 6 + number + 1, appetite);
                        model.run(700).and_then(|()| model.finish())
                    })
                })
                .collect();
            for thread in threads {
                holds(thread.join().expect("no panic"));
            }
            holds(is_empty());
        }
    });
}

#[test]
fn an_alignment_that_cannot_be_had_is_refused() {
    in_each_setting("an_alignment_that_cannot_be_had_is_refused", || {
        for shift in 4..48 {
            let align = 1 << shift;
            for size in [1, 100_000, 3 << 20] {
                let block = homenode::alloc_aligned(size, align);
                assert!(block.addr().is_multiple_of(align), "{block:p} at {align:#x}");
                assert!(!block.is_null() || align > 1 << 30, "{align:#x} is refused");
                // SAFETY: it was just handed out, or is null.
                #[expect(unsafe_code, reason = "free is unsafe")]
                unsafe {
                    homenode::free(block);
                };
            }
        }
        holds(is_empty());
    });
}

#[test]
fn a_request_beyond_the_address_space_gets_null() {
    in_each_setting("a_request_beyond_the_address_space_gets_null", || {
        let compound: usize = 2 << 20;
        let counts = (0..44).map(|shift| 1_usize << shift).chain([
            u32::MAX as usize,
            (1 << 32) - 2,
            1 << 32,
        ]);
        for bytes in counts
            .map(|count| count.saturating_mul(compound))
            .chain([usize::MAX, isize::MAX as usize])
        {
            for bytes in [bytes - 1, bytes, bytes.saturating_add(1)] {
                if bytes > 1 << 42 {
                    assert!(homenode::alloc(bytes).is_null(), "{bytes:#x}");
                    assert!(homenode::alloc_zeroed(bytes, 16).is_null(), "{bytes:#x}");
                    assert!(homenode::alloc_aligned(bytes, 4 << 20).is_null(), "{bytes:#x}");
                }
            }
        }
        assert_eq!(objects_out(), Ok(0));
        holds(is_empty());
    });
}

#[test]
fn a_seed_is_a_program() {
    let mut one = Random::new(5);
    let mut other = one.clone();
    assert!((0..100).all(|_| one.next() == other.next()));
}
