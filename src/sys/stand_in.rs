//! Under loom: what the lock stands on.  Threads are who the model says, a futex is a condition variable
//! without the time limit, and the thread that lived through the fork is number 1.

use core::cell::Cell;
use loom::sync::{Condvar, Mutex};

loom::thread_local! {
    static THREAD: Cell<(usize, u32)> = Cell::new((1, 1));
}

loom::lazy_static! {
    static ref ASLEEP: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Makes the calling thread number `thread`, of a process of that generation.
pub(crate) fn be(thread: usize, generation: u32) {
    THREAD.with(|who| who.set((thread, generation)));
}

pub(super) mod arch {
    use super::THREAD;
    use crate::base::sync::Ordering;

    /// The ranks of a thread, which are not looked at.
    pub(crate) struct Block {
        pub(crate) ranks: Ranks,
    }

    pub(crate) struct Ranks;

    impl Ranks {
        pub(crate) fn load(&self, _: Ordering) -> u32 {
            0
        }

        pub(crate) fn store(&self, _: u32, _: Ordering) {}
    }

    pub(crate) fn thread_block() -> &'static Block {
        &Block { ranks: Ranks }
    }

    pub(crate) fn thread_pointer() -> usize {
        THREAD.with(|who| who.get().0 * 64)
    }
}

pub(super) mod process {
    use super::THREAD;

    pub(crate) fn generation() -> u32 {
        THREAD.with(|who| who.get().1)
    }

    pub(crate) fn survived(owner: usize, _: u32) -> bool {
        owner == 64
    }

    pub(crate) fn is_vfork_child() -> bool {
        false
    }

    pub(crate) fn vforks() -> u32 {
        0
    }

    pub(crate) fn notice_fork() {}
}

pub(super) mod wait {
    use super::ASLEEP;
    use crate::base::sync::{AtomicU64, Ordering};

    const LOW: u64 = u32::MAX as u64;

    pub(crate) fn wait_while(word: &AtomicU64, value: u64) {
        let held = ASLEEP.0.lock().expect("no thread fails inside");
        if word.load(Ordering::Relaxed) & LOW == value & LOW {
            drop(ASLEEP.1.wait(held));
        }
    }

    pub(crate) fn wake_one(_: &AtomicU64) {
        let _held = ASLEEP.0.lock().expect("no thread fails inside");
        ASLEEP.1.notify_one();
    }
}
