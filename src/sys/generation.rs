//! One thread of a new process counts its generation, and the others wait for it.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | P1 `seen` compare-exchange | Relaxed | | one thread counts; the word carries nothing to it |
//! | P2 `seen` store | Release | P3 | the new generation is visible to who sees the word |
//! | P3 `seen` load | Acquire | P2 | |

use crate::base::sync::{AtomicU32, Ordering, order, spin_loop};

/// What the word is while a thread counts.
const COUNTING: u32 = u32::MAX;

/// Runs `count` unless the word is `seen`; when it returns, somebody has counted and the word is `seen`.
pub(super) fn count_once(word: &AtomicU32, seen: u32, count: impl FnOnce()) {
    loop {
        let now = word.load(order!(P3, Acquire));
        if now == seen {
            return;
        }
        // P1
        if now != COUNTING
            && word.compare_exchange(now, COUNTING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            count();
            word.store(seen, order!(P2, Release));
            return;
        }
        spin_loop();
    }
}

#[cfg(all(loom, test))]
mod loom_models {
    use super::count_once;
    use crate::base::sync::AtomicU32;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use loom::sync::Arc;
    use loom::thread;

    #[derive(Default)]
    struct Process {
        steps: Steps,
        seen: AtomicU32,
        generation: Plain,
    }

    impl Process {
        fn notice(&self) {
            self.steps.pass();
            count_once(&self.seen, 7, || self.generation.count());
            self.steps.pass();
            assert_eq!(self.generation.get(), 1);
        }
    }

    fn two_threads_notice_a_fork() {
        let process = Arc::new(Process::default());
        let other = process.clone();
        let thread = thread::spawn(move || other.notice());
        process.notice();
        thread.join().expect("the other thread ends");
    }

    #[test]
    fn a_generation_is_counted_once() {
        explore(two_threads_notice_a_fork);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("P2", two_threads_notice_a_fork));
        assert!(is_caught("P3", two_threads_notice_a_fork));
    }
}
