//! A model of the heap: the blocks that a random program holds, and what must be true of them.
//!
//! The model allocates from the system's allocator, so nothing here disturbs the heap under test.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]
#![allow(unsafe_code, reason = "blocks are raw memory, read and written by words")]

use std::collections::BTreeMap;

use homenode::{Census, Drained, How};

/// Largest block that a class serves, in bytes.
const CLASS_BYTES_MAX: usize = 1 << 20;
/// Largest alignment that a class serves, in bytes.
const CLASS_ALIGN_MAX: usize = 32 << 10;
const COMPOUND_BYTES: usize = 2 << 20;
/// Blocks up to this size are written in full, larger ones at their ends and once a base page.
const FILLED_BYTES_MAX: usize = 4096;
const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;

/// What went wrong, in words; [`Ok`] otherwise.
pub(crate) type Verdict = Result<(), String>;

/// xorshift64: a program is its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is above zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).expect("64 bits");
        usize::try_from(self.next() % end).expect("below a usize")
    }

    /// A number from `low` to `high`.
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// The largest requests of a program, and how much it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appetite {
    /// Largest request, in bytes.
    pub(crate) largest: usize,
    /// Live bytes at most.
    pub(crate) bytes: usize,
    /// Live blocks at most.
    pub(crate) blocks: usize,
    /// True when a null result is no fault: the system is refusing on purpose.
    pub(crate) may_starve: bool,
}

impl Appetite {
    /// Every path of the allocator.
    pub(crate) const WIDE: Self =
        Self { largest: 24 << 20, bytes: 96 << 20, blocks: 3000, may_starve: false };

    pub(crate) const fn starving(self) -> Self {
        Self { may_starve: true, ..self }
    }
}

/// A live block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) address: usize,
    /// Bytes asked for.
    pub(crate) size: usize,
    pub(crate) usable: usize,
    pub(crate) align: usize,
    tag: u64,
    /// True when whole compounds serve it, no class.
    is_large: bool,
}

impl Block {
    pub(crate) fn pointer(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn word(&self, at: usize) -> *mut u64 {
        std::ptr::with_exposed_provenance_mut(self.address + at)
    }

    fn expected(&self, at: usize) -> u64 {
        self.tag ^ u64::try_from(at).expect("64 bits").wrapping_mul(0xff51_afd7_ed55_8ccd)
    }

    fn fill(&self) {
        for at in marks(self.usable) {
            // SAFETY: the block is this model's own, usable up to `usable`, and `at` is a word within.
            unsafe { self.word(at).write(self.expected(at)) };
        }
    }

    /// Checks the words that lie within the first `length` bytes, as a block of `usable` bytes had them.
    fn holds(&self, usable: usize, length: usize) -> Verdict {
        for at in marks(usable).filter(|at| at + WORD_BYTES <= length) {
            // SAFETY: as in `fill`.
            let word = unsafe { self.word(at).read() };
            if word != self.expected(at) {
                return Err(format!("{:#x} stands {at} bytes into {self:x?}", word));
            }
        }
        Ok(())
    }

    fn is_zero(&self) -> Verdict {
        let words = self.size / WORD_BYTES;
        // SAFETY: the block has at least `size` bytes, is aligned to words, and is this model's own.
        let whole = unsafe { std::slice::from_raw_parts(self.word(0), words) };
        let rest = self.pointer().wrapping_add(words * WORD_BYTES);
        // SAFETY: as above.
        let tail = unsafe { std::slice::from_raw_parts(rest, self.size % WORD_BYTES) };
        if whole.iter().all(|&word| word == 0) && tail.iter().all(|&byte| byte == 0) {
            Ok(())
        } else {
            Err(format!("zeroed memory is dirty: {self:x?}"))
        }
    }
}

/// Offsets of the words that are written in a block of `usable` bytes.
fn marks(usable: usize) -> impl Iterator<Item = usize> {
    let words = usable / WORD_BYTES * WORD_BYTES;
    let step = if usable <= FILLED_BYTES_MAX { WORD_BYTES } else { PAGE_BYTES };
    (0..words).step_by(step).chain(words.checked_sub(WORD_BYTES))
}

/// The blocks that one thread holds, and its program.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) random: Random,
    appetite: Appetite,
    blocks: Vec<Block>,
    bytes: usize,
    /// End by address, of each live block.
    ranges: BTreeMap<usize, usize>,
    /// Requests that got null.
    pub(crate) starved: u64,
}

impl Model {
    pub(crate) fn new(seed: u64, appetite: Appetite) -> Self {
        Self {
            random: Random::new(seed),
            appetite,
            blocks: Vec::new(),
            bytes: 0,
            ranges: BTreeMap::new(),
            starved: 0,
        }
    }

    /// Runs `steps` random calls.
    pub(crate) fn run(&mut self, steps: usize) -> Verdict {
        (0..steps).try_for_each(|_| self.step())
    }

    /// One random call, or a burst of frees.
    pub(crate) fn step(&mut self) -> Verdict {
        if self.blocks.len() >= self.appetite.blocks || self.bytes >= self.appetite.bytes {
            return self.burst();
        }
        match self.random.below(100) {
            0..44 => self.allocate(),
            44..50 => self.allocate_aligned(),
            50..57 => self.allocate_zeroed(),
            57..66 => self.reallocate(),
            66..98 => self.free_one(),
            98 => self.burst(),
            _ => {
                self.relieve();
                Ok(())
            }
        }
    }

    /// A size of any range: small ones most often.
    pub(crate) fn size(&mut self) -> usize {
        let largest = self.appetite.largest;
        let random = &mut self.random;
        let size = match random.below(100) {
            0..3 => random.below(2),
            3..45 => random.within(1, 128),
            45..70 => random.within(129, 1024),
            70..84 => random.within(1025, 32 << 10),
            84..94 => random.within((32 << 10) + 1, 256 << 10),
            94..97 => random.within((256 << 10) + 1, CLASS_BYTES_MAX),
            97..99 => random.within(CLASS_BYTES_MAX + 1, 5 << 20),
            _ => random.within(1, 24 << 20),
        };
        size.min(largest)
    }

    fn alignment(&mut self) -> usize {
        match self.random.below(40) {
            0 => 1 << self.random.within(16, 22),
            1..12 => 1 << self.random.within(12, 15),
            _ => 1 << self.random.within(4, 11),
        }
    }

    fn allocate(&mut self) -> Verdict {
        let size = self.size();
        self.keep(homenode::alloc(size), size, 16)
    }

    fn allocate_aligned(&mut self) -> Verdict {
        let (size, align) = (self.size(), self.alignment());
        self.keep(homenode::alloc_aligned(size, align), size, align)
    }

    fn allocate_zeroed(&mut self) -> Verdict {
        let size = self.size();
        let align = if self.random.one_in(4) { self.alignment() } else { 16 };
        self.keep_zeroed(homenode::alloc_zeroed(size, align), size, align)
    }

    /// As [`Self::keep`], after a look at every byte.
    pub(crate) fn keep_zeroed(&mut self, pointer: *mut u8, size: usize, align: usize) -> Verdict {
        if !pointer.is_null() {
            Block {
                address: pointer.expose_provenance(),
                size,
                usable: size,
                align,
                tag: 0,
                is_large: false,
            }
            .is_zero()?;
        }
        self.keep(pointer, size, align)
    }

    /// Checks a fresh block, writes it, and holds it.
    pub(crate) fn keep(&mut self, pointer: *mut u8, size: usize, align: usize) -> Verdict {
        if pointer.is_null() {
            return self.starve(size);
        }
        let address = pointer.expose_provenance();
        // SAFETY: the block was just handed out.
        let usable = unsafe { homenode::usable_size(pointer) }
            .ok_or_else(|| format!("{pointer:p} is not ours"))?;
        let is_large = size > CLASS_BYTES_MAX || align > CLASS_ALIGN_MAX;
        let block = Block { address, size, usable, align, tag: self.random.next(), is_large };
        self.admit(block)?;
        block.fill();
        Ok(())
    }

    fn starve(&mut self, size: usize) -> Verdict {
        self.starved += 1;
        if self.appetite.may_starve { Ok(()) } else { Err(format!("no memory for {size} bytes")) }
    }

    /// Holds a block whose words are written already, after a look at its place.
    pub(crate) fn admit(&mut self, block: Block) -> Verdict {
        if !block.address.is_multiple_of(block.align.max(WORD_BYTES)) {
            return Err(format!("misaligned: {block:x?}"));
        }
        if block.usable < block.size {
            return Err(format!("shorter than asked for: {block:x?}"));
        }
        let end = block.address + block.usable;
        if let Some((start, other)) = self.ranges.range(..end).next_back()
            && *other > block.address
        {
            return Err(format!("{block:x?} overlaps the live block at {start:#x}"));
        }
        self.ranges.insert(block.address, end);
        self.bytes += block.usable;
        self.blocks.push(block);
        Ok(())
    }

    /// Lets a random block go, checked; the caller frees it or hands it on.
    pub(crate) fn part_with(&mut self) -> Option<Result<Block, String>> {
        let count = self.blocks.len();
        if count == 0 {
            return None;
        }
        let at = match self.random.below(4) {
            0 => count - 1,
            1 => 0,
            _ => self.random.below(count),
        };
        Some(self.remove(at))
    }

    /// Lets the block at `at` go, checked.
    pub(crate) fn remove(&mut self, at: usize) -> Result<Block, String> {
        let block = self.blocks.swap_remove(at);
        self.ranges.remove(&block.address);
        self.bytes -= block.usable;
        block.holds(block.usable, block.usable)?;
        // SAFETY: the block is live.
        let usable = unsafe { homenode::usable_size(block.pointer()) };
        if usable == Some(block.usable) {
            Ok(block)
        } else {
            Err(format!("now {usable:x?} usable bytes: {block:x?}"))
        }
    }

    fn free_one(&mut self) -> Verdict {
        self.part_with().transpose()?.as_ref().map_or(Ok(()), |block| {
            release(block);
            Ok(())
        })
    }

    /// Frees a part of what is held, in the order of allocation or against it.
    fn burst(&mut self) -> Verdict {
        let count = self.blocks.len() * self.random.within(1, 8) / 8;
        let from_the_start = self.random.one_in(2);
        for _ in 0..count {
            let at = if from_the_start { 0 } else { self.blocks.len() - 1 };
            release(&self.remove(at)?);
        }
        Ok(())
    }

    fn reallocate(&mut self) -> Verdict {
        let Some(block) = self.part_with().transpose()? else { return Ok(()) };
        let size = match self.random.below(4) {
            0 => self.size(),
            1 => block.size / 2,
            2 => block.size + self.random.below(64),
            _ => (block.size * 2).min(self.appetite.largest),
        };
        // SAFETY: the block is live, this model's own, and its usable size was just asked for.
        let pointer =
            unsafe { homenode::realloc(block.pointer(), block.usable, size, block.align) };
        self.keep_resized(block, pointer, size, block.usable)
    }

    /// Holds what became of a block that was parted with and resized, of which `kept` bytes are to be kept:
    /// the same one where that is null.
    pub(crate) fn keep_resized(
        &mut self,
        block: Block,
        pointer: *mut u8,
        size: usize,
        kept: usize,
    ) -> Verdict {
        if pointer.is_null() {
            self.admit(block)?;
            return self.starve(size);
        }
        let moved = Block { address: pointer.expose_provenance(), size, ..block };
        moved.holds(block.usable, kept.min(size))?;
        if moved.address == block.address {
            // SAFETY: the block is live.
            let usable = unsafe { homenode::usable_size(pointer) }.ok_or("not ours any more")?;
            let moved = Block { usable, ..moved };
            self.admit(moved)?;
            moved.fill();
            return Ok(());
        }
        self.keep(pointer, size, block.align)
    }

    /// A random drain or trim.
    pub(crate) fn relieve(&mut self) {
        let how = [How::Auto, How::Fence, How::Quiet][self.random.below(3)];
        // Pending or not: a later drain goes on from there.
        let _ = match self.random.below(8) {
            0 => homenode::drain_all(how),
            1 => {
                homenode::trim();
                Drained::Objects(0)
            }
            _ => homenode::drain_cpu(u32::try_from(self.random.below(4)).expect("small"), how),
        };
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Blocks held.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Frees all that is held, each checked.
    pub(crate) fn finish(&mut self) -> Verdict {
        while !self.blocks.is_empty() {
            release(&self.remove(self.blocks.len() - 1)?);
        }
        Ok(())
    }

    /// Lets system calls fail unpunished, or not.
    pub(crate) fn may_starve(&mut self, may: bool) {
        self.appetite.may_starve = may;
    }
}

/// Frees a block that was parted with.
pub(crate) fn release(block: &Block) {
    // SAFETY: the block is live, and nobody holds it any more.
    unsafe { homenode::free(block.pointer()) };
}

/// Empties the slabs of all CPUs: drains until none holds an object.
pub(crate) fn drain() -> Verdict {
    let is_done =
        || homenode::drain_all(How::Fence) != Drained::Pending && Census::take().cached == 0;
    if (0..1000).any(|_| is_done()) {
        Ok(())
    } else {
        Err("fenced drains do not come to an end".to_owned())
    }
}

/// Objects out of their spans, by the heap's own check.
pub(crate) fn objects_out() -> Result<u64, String> {
    homenode::check()
        .map_err(|address| format!("records disagree at {address:#x}: {:?}", Census::take()))
}

/// Holds the whole heap against all blocks that are live: no thread is in a call meanwhile.
pub(crate) fn agrees<'a>(blocks: impl Iterator<Item = &'a Block>) -> Verdict {
    drain()?;
    let (mut objects, mut compounds) = (0, 0);
    let mut ranges = Vec::new();
    for block in blocks {
        if block.is_large {
            compounds += u64::try_from(block.usable.div_ceil(COMPOUND_BYTES)).expect("64 bits");
        } else {
            objects += 1;
        }
        ranges.push((block.address, block.address + block.usable));
    }
    ranges.sort_unstable();
    if let Some(pair) = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        return Err(format!("two live blocks overlap: {pair:x?}"));
    }
    let out = objects_out()?;
    let census = Census::take();
    let used = census.compounds - census.compounds_free - census.compounds_cut;
    if out != objects + census.racked {
        return Err(format!("{out} objects are out, {objects} are held; {census:?}"));
    }
    if used != compounds {
        return Err(format!("{used} compounds are whole blocks, {compounds} are held; {census:?}"));
    }
    Ok(())
}

/// Holds a heap against the emptiness that it must have come back to.
pub(crate) fn is_empty() -> Verdict {
    drain()?;
    homenode::trim();
    let out = objects_out()?;
    let census = Census::take();
    let in_use = census.compounds - census.compounds_free;
    let left = [
        out,
        census.runs,
        census.spans,
        census.cached,
        census.racked,
        census.compounds_cut,
        census.compounds_resident,
        in_use,
    ];
    if left == [0; 8] { Ok(()) } else { Err(format!("not empty: {out} objects out, {census:?}")) }
}
