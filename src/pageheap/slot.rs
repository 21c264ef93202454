//! A slot: the last huge block that was freed on a CPU, in one word.
//!
//! ```text
//!  63     48 47                          21 20     8  7   6  5      0
//! +---------+------------------------------+--------+---+---+--------+
//! |    0    |  address of the block / 2 MiB |   0    | N | 0 | count  |
//! +---------+------------------------------+--------+---+---+--------+
//! all zero: empty;  N: parked since the slot's last birthday;  count: compounds, 1 to 32
//! ```
//! Who takes the word out owns the block; so no lock is needed, a signal handler may come at any moment,
//! and a thread that believes to be on another CPU does no harm.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | L1 swap in `park` | AcqRel | L1, L2, L3 | hands on what the block's user and its head's writers wrote |
//! | L2 compare-exchange in `retake` | Acquire | L1 | |
//! | L3 word taken out in `empty` and `age` | Acquire | L1 | |
//! | L4 compare-exchange of a birthday | Relaxed | | it carries L1 on |

use crate::base::config::COMPOUND_SHIFT;
use crate::base::sync::{AtomicU64, Ordering, order};

const COUNT_MASK: u64 = (1 << 6) - 1;
const NEW: u64 = 1 << 7;

/// Compounds of a block that fits a slot, at most: 64 MiB.
pub(super) const COUNT_MAX: u32 = 32;

/// A slot.
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(super) struct Slot(AtomicU64);

/// A block that a slot holds, or held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parked {
    /// Its first byte.
    pub(super) address: usize,
    /// Its compounds.
    pub(super) count: u32,
}

impl Slot {
    /// An empty slot.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Parks a block of at most [`COUNT_MAX`] compounds; the one that was there before is the caller's.
    pub(super) fn park(&self, block: Parked) -> Option<Parked> {
        decode(self.0.swap(encode(block), order!(L1, AcqRel)))
    }

    /// Takes the block out if it has `count` compounds and is aligned to `align`, a power of two; its
    /// address.
    pub(super) fn retake(&self, count: u32, align: usize) -> Option<usize> {
        let word = self.0.load(Ordering::Relaxed);
        let block = decode(word)?;
        if block.count != count || block.address & (align - 1) != 0 {
            return None;
        }
        let taken = self.0.compare_exchange(word, 0, order!(L2, Acquire), Ordering::Relaxed);
        taken.ok().map(|_| block.address)
    }

    /// What is parked now.
    pub(super) fn peek(&self) -> Option<Parked> {
        decode(self.0.load(Ordering::Relaxed))
    }

    /// Takes the block out.
    pub(super) fn empty(&self) -> Option<Parked> {
        self.peek()?;
        decode(self.0.swap(0, order!(L3, Acquire)))
    }

    /// Has a birthday: takes the block out if it was there at the last one already.
    pub(super) fn age(&self) -> Option<Parked> {
        let word = self.0.load(Ordering::Relaxed);
        let block = decode(word)?;
        if word & NEW != 0 {
            // L4
            let _ =
                self.0.compare_exchange(word, word & !NEW, Ordering::Relaxed, Ordering::Relaxed);
            return None;
        }
        let taken = self.0.compare_exchange(word, 0, order!(L3, Acquire), Ordering::Relaxed);
        taken.ok().map(|_| block)
    }
}

fn encode(block: Parked) -> u64 {
    block.address as u64 | NEW | u64::from(block.count)
}

#[expect(clippy::cast_possible_truncation, reason = "an address is 64 bits, a count is six")]
fn decode(word: u64) -> Option<Parked> {
    (word != 0).then_some(Parked {
        address: (word >> COMPOUND_SHIFT << COMPOUND_SHIFT) as usize,
        count: (word & COUNT_MASK) as u32,
    })
}

const _: () = assert!(COUNT_MAX as u64 <= COUNT_MASK && NEW < 1 << COMPOUND_SHIFT);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{COUNT_MAX, Parked, Slot};

    const BLOCK: Parked = Parked { address: 6 << 21, count: COUNT_MAX };

    #[test]
    fn a_block_comes_back_to_who_asks_for_its_length() {
        let slot = Slot::new();
        assert_eq!(slot.retake(COUNT_MAX, 16), None);
        assert_eq!(slot.park(BLOCK), None);
        assert_eq!(slot.retake(COUNT_MAX - 1, 16), None);
        assert_eq!(slot.retake(COUNT_MAX, 4 << 21), None);
        assert_eq!(slot.retake(COUNT_MAX, 2 << 21), Some(BLOCK.address));
        assert_eq!(slot.peek(), None);
    }

    #[test]
    fn the_last_block_stays() {
        let slot = Slot::new();
        let other = Parked { address: 1 << 21, count: 1 };
        assert_eq!(slot.park(BLOCK), None);
        assert_eq!(slot.park(other), Some(BLOCK));
        assert_eq!(slot.empty(), Some(other));
        assert_eq!(slot.empty(), None);
    }

    #[test]
    fn a_block_leaves_at_its_second_birthday() {
        let slot = Slot::new();
        slot.park(BLOCK);
        assert_eq!(slot.age(), None);
        assert_eq!(slot.retake(COUNT_MAX, 16), Some(BLOCK.address));
        slot.park(BLOCK);
        assert_eq!((slot.age(), slot.age(), slot.age()), (None, Some(BLOCK), None));
    }
}

#[cfg(all(loom, test))]
mod loom_models {
    use super::{Parked, Slot};
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use loom::sync::Arc;
    use loom::thread;

    /// A CPU's slot and two blocks, which their users write without atomics.
    #[derive(Default)]
    struct Cpu {
        steps: Steps,
        slot: Slot,
        blocks: [Plain; 2],
    }

    impl Cpu {
        fn use_block(&self, block: Parked) {
            self.blocks[block.count as usize - 1].count();
            self.steps.pass();
        }

        /// Uses a block and frees it; what it displaces is used, too.
        fn free(&self, count: u32) {
            let block = Parked { address: (count as usize) << 21, count };
            self.use_block(block);
            if let Some(displaced) = self.slot.park(block) {
                self.use_block(displaced);
            }
        }

        fn take(&self, count: u32) {
            self.steps.pass();
            if let Some(address) = self.slot.retake(count, 16) {
                self.use_block(Parked { address, count });
            }
        }
    }

    fn beside(mine: fn(&Cpu), theirs: fn(&Cpu)) {
        let cpu = Arc::new(Cpu::default());
        let other = cpu.clone();
        let thread = thread::spawn(move || theirs(&other));
        mine(&cpu);
        thread.join().expect("the other thread ends");
    }

    fn one_frees_and_one_takes() {
        beside(|cpu| cpu.free(1), |cpu| cpu.take(1));
    }

    fn two_free() {
        beside(|cpu| cpu.free(1), |cpu| cpu.free(2));
    }

    fn one_frees_and_one_empties() {
        beside(
            |cpu| cpu.free(1),
            |cpu| {
                cpu.steps.pass();
                if let Some(block) = cpu.slot.empty() {
                    cpu.use_block(block);
                }
            },
        );
    }

    fn a_birthday_carries_on() {
        beside(
            |cpu| cpu.free(1),
            |cpu| {
                for _ in 0..2 {
                    cpu.steps.pass();
                    if let Some(block) = cpu.slot.age() {
                        cpu.use_block(block);
                    }
                }
                cpu.take(1);
            },
        );
    }

    #[test]
    fn a_parked_block_has_one_owner() {
        explore(one_frees_and_one_takes);
        explore(two_free);
        explore(one_frees_and_one_empties);
        explore(a_birthday_carries_on);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("L1", one_frees_and_one_takes));
        assert!(is_caught("L1", two_free));
        assert!(is_caught("L2", one_frees_and_one_takes));
        assert!(is_caught("L3", one_frees_and_one_empties));
        assert!(is_caught("L3", a_birthday_carries_on));
    }
}
