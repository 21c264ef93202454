//! The word that emergency blocks are cut by: where the next one starts, and how many there are.
//!
//! ```text
//!  63              48 47                                              0
//! +------------------+-------------------------------------------------+
//! |  blocks cut so   |  address of the next block's header: inside the |
//! |  far             |  current compound; 0 before the first           |
//! +------------------+-------------------------------------------------+
//! ```
//! The current compound holds [`BLOCKS_MAX`] counts of its head from its start; a free gives one back,
//! and who replaces the compound gives back those that no block was cut for.  So a cut is one change of
//! one word, and touches no head that might have become another's meanwhile.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | E1 word load | Acquire | E2 | the compound's head is written before others cut from it |
//! | E2 word compare-exchange of a replacement | Release | E1 | |
//! | E3 word compare-exchange of a cut | Relaxed | | it carries E2 on; what is cut is the caller's alone |

use crate::base::config::COMPOUND_BYTES;
use crate::base::sync::{AtomicU64, Ordering, order};

const COUNT_SHIFT: u32 = 48;
const ADDRESS_MASK: u64 = (1 << COUNT_SHIFT) - 1;

/// Blocks of one compound at most, and its first refcount.
pub(super) const BLOCKS_MAX: u32 = u16::MAX as u32;

/// The word.
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(super) struct Bump(AtomicU64);

/// The current compound has no room for a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full(u64);

/// A compound that is current no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Replaced {
    /// An address in it.
    pub(super) address: usize,
    /// Counts that it holds for blocks that were never cut.
    pub(super) uncut: u32,
}

impl Bump {
    /// Without a compound.
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Cuts a block of `bytes` at `align` (a power of two) behind `header` bytes; its address.
    pub(super) fn cut(&self, header: usize, bytes: usize, align: usize) -> Result<usize, Full> {
        let mut word = self.0.load(order!(E1, Acquire));
        loop {
            let next = address(word);
            let block = (next + header).next_multiple_of(align);
            let end = (block + bytes).next_multiple_of(header);
            // The end stays inside the compound, so that it always names it.
            if next == 0
                || end >= (next / COMPOUND_BYTES + 1) * COMPOUND_BYTES
                || count(word) == BLOCKS_MAX
            {
                return Err(Full(word));
            }
            let after = u64::from(count(word) + 1) << COUNT_SHIFT | end as u64;
            // E3
            match self.0.compare_exchange(word, after, Ordering::Relaxed, order!(E1, Acquire)) {
                Ok(_) => return Ok(block),
                Err(now) => word = now,
            }
        }
    }

    /// Makes the compound at `start` the current one, unless another did so meanwhile: `Err`.  The old
    /// one, if there was one.
    pub(super) fn replace(&self, full: Full, start: usize) -> Result<Option<Replaced>, ()> {
        let Full(old) = full;
        self.0
            .compare_exchange(old, start as u64, order!(E2, Release), Ordering::Relaxed)
            .map_err(|_| ())?;
        let replaced = Replaced { address: address(old), uncut: BLOCKS_MAX - count(old) };
        Ok((replaced.address != 0).then_some(replaced))
    }
}

const fn address(word: u64) -> usize {
    (word & ADDRESS_MASK) as usize
}

const fn count(word: u64) -> u32 {
    (word >> COUNT_SHIFT) as u32
}

const _: () = assert!(size_of::<usize>() == 8, "addresses of a program fit 48 bits");

#[cfg(all(loom, test))]
mod loom_models {
    use super::{BLOCKS_MAX, Bump, address};
    use crate::base::config::COMPOUND_BYTES;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use crate::base::sync::{AtomicU32, Ordering};
    use crate::region::compound::{Head, Left};
    use loom::sync::Arc;
    use loom::thread;

    const HEADER: usize = 16;

    /// Compounds number 1 to 4, of which the first are handed out.
    #[derive(Default)]
    struct Reserve {
        steps: Steps,
        bump: Bump,
        fresh: AtomicU32,
        heads: [Head; 4],
        /// The words of a head that are written before the compound is current.
        records: [Plain; 4],
        retired: [AtomicU32; 4],
    }

    impl Reserve {
        fn lower(&self, compound: usize, count: u32) {
            if self.heads[compound - 1].lower(count) == Left::Empty {
                self.retired[compound - 1].fetch_add(1, Ordering::Relaxed);
            }
        }

        fn take(&self, bytes: usize) -> usize {
            self.steps.pass();
            loop {
                match self.bump.cut(HEADER, bytes, HEADER) {
                    Ok(block) => return block,
                    Err(full) => {
                        let fresh = self.fresh.fetch_add(1, Ordering::Relaxed) as usize + 1;
                        self.records[fresh - 1].count();
                        self.heads[fresh - 1].begin_count(BLOCKS_MAX);
                        if let Ok(Some(old)) = self.bump.replace(full, fresh * COMPOUND_BYTES) {
                            self.lower(old.address / COMPOUND_BYTES, old.uncut);
                        }
                    }
                }
            }
        }

        /// Takes a block and frees it; its address.
        fn use_block(&self, bytes: usize) -> usize {
            let block = self.take(bytes);
            let compound = block / COMPOUND_BYTES;
            assert_eq!(self.records[compound - 1].get(), 1);
            self.lower(compound, 1);
            block
        }

        fn use_two(bytes: usize) {
            let reserve = Arc::new(Self::default());
            let other = reserve.clone();
            let user = thread::spawn(move || other.use_block(bytes));
            let mine = reserve.use_block(bytes);
            let theirs = user.join().expect("the other handler ends");
            assert!(mine.abs_diff(theirs) >= bytes + HEADER);
            let current = address(reserve.bump.0.load(Ordering::Relaxed)) / COMPOUND_BYTES;
            for compound in [mine, theirs].map(|block| block / COMPOUND_BYTES) {
                let retired = reserve.retired[compound - 1].load(Ordering::Relaxed);
                assert_eq!(
                    retired,
                    u32::from(compound != current),
                    "a compound goes back once, when it is full"
                );
            }
        }
    }

    fn two_blocks_share_a_compound() {
        Reserve::use_two(100);
    }

    fn each_block_fills_a_compound() {
        Reserve::use_two(COMPOUND_BYTES - 100);
    }

    #[test]
    fn blocks_are_apart_and_full_compounds_go_back() {
        explore(two_blocks_share_a_compound);
        explore(each_block_fills_a_compound);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("E1", two_blocks_share_a_compound));
        assert!(is_caught("E2", two_blocks_share_a_compound));
    }
}
