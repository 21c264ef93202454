//! Blocks by layout, as `GlobalAlloc` hands them out: random programs keep what they wrote, and the hit
//! paths keep their budget.  The program itself allocates from the system.
#![allow(unsafe_code, reason = "blocks are raw memory, and the calls of GlobalAlloc are unsafe")]

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::alloc::{GlobalAlloc, Layout};

use heap::Random;
use homenode::HomeNode;

const HEAP: HomeNode = HomeNode::new();

const SETTINGS: &[&[(&str, &str)]] =
    &[&[], &[("HOMENODE_FAKE_NODES", "2")], &[("HOMENODE_RSEQ", "off")]];

/// A live block, every byte of it equal to `tag`.
struct Block {
    start: *mut u8,
    layout: Layout,
    tag: u8,
}

impl Block {
    fn new(random: &mut Random) -> Self {
        let layout = layout(random.below(12), size(random));
        // SAFETY: the layout has a size.
        let start = unsafe { HEAP.alloc(layout) };
        let mut block = Self { start, layout, tag: 0 };
        block.fill(random);
        block
    }

    fn zeroed(random: &mut Random) -> Self {
        let layout = layout(random.below(12), size(random));
        // SAFETY: the layout has a size.
        let start = unsafe { HEAP.alloc_zeroed(layout) };
        let mut block = Self { start, layout, tag: 0 };
        block.holds(layout.size());
        block.fill(random);
        block
    }

    fn fill(&mut self, random: &mut Random) {
        assert!(!self.start.is_null() && self.start.addr().is_multiple_of(self.layout.align()));
        // SAFETY: the block is live.
        let usable = unsafe { homenode::usable_size(self.start) };
        assert!(usable.is_some_and(|usable| usable >= self.layout.size()), "{:?}", self.layout);
        self.tag = random.next().to_le_bytes()[0];
        // SAFETY: the block is this one's own, and as long as its layout.
        unsafe { self.start.write_bytes(self.tag, self.layout.size()) };
    }

    fn holds(&self, bytes: usize) {
        // SAFETY: the block is live, written, and as long as its layout.
        let all = unsafe { std::slice::from_raw_parts(self.start, bytes) };
        assert!(all.iter().all(|&byte| byte == self.tag), "{:?} lost its bytes", self.layout);
    }

    fn resize(&mut self, random: &mut Random, size: usize) {
        let kept = self.layout.size().min(size);
        // SAFETY: the block was handed out for this layout; the size is not zero.
        self.start = unsafe { HEAP.realloc(self.start, self.layout, size) };
        self.layout = Layout::from_size_align(size, self.layout.align()).expect("a small layout");
        self.holds(kept);
        self.fill(random);
    }

    fn free(self) {
        self.holds(self.layout.size());
        // SAFETY: the block was handed out for this layout.
        unsafe { HEAP.dealloc(self.start, self.layout) };
    }
}

fn layout(shift: usize, size: usize) -> Layout {
    Layout::from_size_align(size, 1 << shift).expect("a small layout")
}

fn size(random: &mut Random) -> usize {
    match random.below(100) {
        0..80 => random.within(1, 1100),
        80..99 => random.within(1, 40_000),
        _ => random.within(1, 3 << 20),
    }
}

#[test]
fn random_layouts_keep_their_bytes_through_every_change() {
    support::in_each_setting(
        "random_layouts_keep_their_bytes_through_every_change",
        SETTINGS,
        || {
            let mut random = Random::new(7);
            let mut blocks: Vec<Block> = Vec::new();
            for _ in 0..20_000 {
                let at = random.below(blocks.len().max(1));
                match random.below(10) {
                    _ if blocks.is_empty() => blocks.push(Block::new(&mut random)),
                    0..3 if blocks.len() < 600 => blocks.push(Block::new(&mut random)),
                    3 if blocks.len() < 600 => blocks.push(Block::zeroed(&mut random)),
                    4 | 5 => {
                        let size = size(&mut random);
                        blocks[at].resize(&mut random, size);
                    }
                    // A little shorter or longer: often the same class, or in place.
                    6 | 7 => {
                        let size = blocks[at].layout.size();
                        let size = random.within(size * 2 / 3 + 1, size + size / 16 + 1);
                        blocks[at].resize(&mut random, size);
                    }
                    _ => blocks.swap_remove(at).free(),
                }
            }
            blocks.into_iter().for_each(Block::free);
            assert!(homenode::check().is_ok());
        },
    );
}

#[test]
fn a_block_shrunk_in_place_goes_back_to_its_own_class() {
    let (whole, part) = (layout(3, 200), layout(3, 150));
    let comes_back = |_| {
        // SAFETY: the layout has a size.
        let start = unsafe { HEAP.alloc(whole) };
        // SAFETY: the block was handed out for this layout.
        assert_eq!(unsafe { HEAP.realloc(start, whole, part.size()) }, start);
        // SAFETY: it has this layout now.
        unsafe { HEAP.dealloc(start, part) };
        // SAFETY: the layout has a size.
        let next = unsafe { HEAP.alloc(whole) };
        // SAFETY: the block was handed out for this layout.
        unsafe { HEAP.dealloc(next, whole) };
        next == start
    };
    // Not when the thread changes its CPU in between, but then the next time.
    assert!((0..100).any(comes_back));
}

#[test]
fn a_change_within_a_class_does_not_move() {
    let mut random = Random::new(3);
    for (from, to) in [(1, 8), (8, 5), (9, 16), (100, 112), (1000, 1024), (2000, 2048)] {
        let layout = layout(3, from);
        // SAFETY: the layout has a size.
        let start = unsafe { HEAP.alloc(layout) };
        let mut block = Block { start, layout, tag: 0 };
        block.fill(&mut random);
        block.resize(&mut random, to);
        assert_eq!(block.start, start, "{from} to {to}");
        block.free();
    }
}

/// Allocates and frees by a layout that the compiler knows.
#[inline(never)]
fn constant_layout_alloc() -> *mut u8 {
    // SAFETY: the layout has a size.
    unsafe { HEAP.alloc(Layout::new::<[u64; 5]>()) }
}

/// As [`constant_layout_alloc`].
#[inline(never)]
unsafe fn constant_layout_free(start: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { HEAP.dealloc(start, Layout::new::<[u64; 5]>()) };
}

/// A type of an over-aligned layout.
#[repr(align(64))]
struct Wide {
    _bytes: [u8; 100],
}

/// As [`constant_layout_alloc`], over-aligned.
#[inline(never)]
fn wide_layout_alloc() -> *mut u8 {
    // SAFETY: the layout has a size.
    unsafe { HEAP.alloc(Layout::new::<Wide>()) }
}

/// A layout that the compiler does not know.
#[inline(never)]
fn dynamic_layout_alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller asks for a size that is not zero.
    unsafe { HEAP.alloc(layout) }
}

/// As [`dynamic_layout_alloc`].
#[inline(never)]
unsafe fn dynamic_layout_free(start: *mut u8, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe { HEAP.dealloc(start, layout) };
}

/// The instructions of this program's function, up to its end.
fn instructions(function: &str) -> Vec<String> {
    let program = std::env::current_exe().expect("a program has a path");
    let disassemble = format!("--disassemble={function}");
    let args = ["-C", "-d", "--no-show-raw-insn", "-M", "intel", &disassemble];
    let text = support::tool("objdump", &args, &program);
    let head = format!("<{function}>:");
    let lines = text.lines().skip_while(|line| !line.ends_with(&head)).skip(1);
    let body = lines.take_while(|line| !line.is_empty());
    body.filter_map(|line| line.split_once(":\t")).map(|(_, text)| text.to_owned()).collect()
}

/// How many instructions a hit takes: no branch before its `ret` is taken.
fn hit_length(function: &str) -> usize {
    let body = instructions(function);
    let end = body.iter().position(|text| text.trim() == "ret").expect("a hit path returns");
    let line = &body[..=end];
    assert!(line.iter().all(|text| !text.contains("lock") && !text.contains("call")), "{line:?}");
    end + 1
}

#[test]
fn the_hit_paths_of_rust_keep_their_budget() {
    if !support::has_tool("objdump") {
        return;
    }
    assert_eq!(hit_length("homenode::front::hit::alloc_class"), 18);
    assert_eq!(hit_length("homenode::front::hit::free_class"), 24);
    assert_eq!(hit_length("homenode::front::hit::alloc"), 24);
    assert_eq!(hit_length("homenode::front::hit::free"), 23);
}

#[test]
fn a_constant_layout_is_a_constant_class_at_the_call() {
    if !support::has_tool("objdump") {
        return;
    }
    // SAFETY: the block is not used.
    unsafe { constant_layout_free(constant_layout_alloc()) };
    assert!(!wide_layout_alloc().is_null());
    let is_class = |text: &String, register: &str, class: u8| {
        text.split_whitespace().eq(["mov", &format!("{register},{class:#x}")])
    };
    let alloc = instructions("layouts::constant_layout_alloc");
    assert!(alloc.len() <= 4 && alloc.iter().any(|text| is_class(text, "edi", 4)), "{alloc:?}");
    let free = instructions("layouts::constant_layout_free");
    assert!(free.len() <= 4 && free.iter().any(|text| is_class(text, "esi", 4)), "{free:?}");
    let wide = instructions("layouts::wide_layout_alloc");
    assert!(wide.len() <= 4 && wide.iter().any(|text| is_class(text, "edi", 9)), "{wide:?}");
}

#[test]
fn a_layout_of_any_size_takes_a_comparison_and_a_look_up() {
    if !support::has_tool("objdump") {
        return;
    }
    let layout = layout(3, 77);
    // SAFETY: the block is not used.
    unsafe { dynamic_layout_free(dynamic_layout_alloc(layout), layout) };
    for function in ["layouts::dynamic_layout_alloc", "layouts::dynamic_layout_free"] {
        // Six, five to round the size up to an alignment that is not known either, and the jump.
        let body = instructions(function);
        let length = body.iter().position(|text| text.starts_with("jmp"));
        assert!(length.is_some_and(|length| length < 12), "{body:?}");
    }
}
