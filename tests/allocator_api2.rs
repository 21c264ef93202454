//! Collections on `HomeNode` by the trait of allocator-api2; the program itself is on the system's.
#![allow(unsafe_code, reason = "the calls of Allocator are unsafe")]

use std::alloc::Layout;
use std::ptr::NonNull;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use homenode::HomeNode;

const HEAP: HomeNode = HomeNode::new();

#[repr(align(128))]
#[derive(Clone, Copy)]
struct Wide(usize);

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).expect("a small layout")
}

fn is_ours<T>(start: *const T) -> bool {
    // SAFETY: the block is live, or not ours.
    unsafe { homenode::usable_size(start.cast()) }.is_some()
}

/// The first bytes of a block.
fn bytes<'a>(block: NonNull<[u8]>, size: usize) -> &'a mut [u8] {
    // SAFETY: callers hold the block, which is at least that long, and use the slice at once.
    unsafe { std::slice::from_raw_parts_mut(block.cast().as_ptr(), size) }
}

/// Writes the bytes of a block, each by its place.
fn fill(block: NonNull<[u8]>, size: usize) {
    bytes(block, size).iter_mut().zip((0..=250).cycle()).for_each(|(byte, n)| *byte = n);
}

fn holds(block: NonNull<[u8]>, size: usize) -> bool {
    bytes(block, size).iter().zip((0..=250).cycle()).all(|(&byte, n)| byte == n)
}

#[test]
fn a_vec_of_wide_items_grows_and_shrinks_aligned() {
    let mut items = Vec::new_in(HEAP);
    for n in 0..20_000 {
        items.push(Wide(n));
        assert!(items.as_ptr().is_aligned());
    }
    assert!(is_ours(items.as_ptr()));
    for length in [9000, 700, 30, 3] {
        items.truncate(length);
        items.shrink_to_fit();
        assert!(items.as_ptr().is_aligned());
        assert!(items.iter().enumerate().all(|(n, item)| item.0 == n));
    }
}

#[test]
fn boxes_live_on_the_heap_and_come_back() {
    let wide = Box::new_in(Wide(5), HEAP);
    let small = Box::new_in(7_u8, HEAP);
    assert!(is_ours(&raw const *wide) && is_ours(&raw const *small));
    assert_eq!((wide.0, *small), (5, 7));
}

#[test]
fn nothing_is_aligned_and_takes_no_memory() {
    for align in [1, 8, 128, 1 << 20] {
        let empty = layout(0, align);
        for block in [HEAP.allocate(empty), HEAP.allocate_zeroed(empty)] {
            let block = block.expect("nothing fits");
            assert_eq!(block.len(), 0);
            assert!(block.cast::<u8>().addr().get().is_multiple_of(align));
            assert!(!is_ours(block.cast::<u8>().as_ptr()));
            // SAFETY: it was handed out for this layout.
            unsafe { HEAP.deallocate(block.cast(), empty) };
        }
    }
    let units: Vec<(), _> = std::iter::repeat_n((), 1000).fold(Vec::new_in(HEAP), |mut all, ()| {
        all.push(());
        all
    });
    assert_eq!(units.len(), 1000);
}

#[test]
fn a_block_grows_out_of_nothing_and_shrinks_to_it() {
    let (empty, some) = (layout(0, 64), layout(100, 64));
    let nothing = HEAP.allocate(empty).expect("nothing fits");
    // SAFETY: it was handed out for this layout.
    let grown = unsafe { HEAP.grow_zeroed(nothing.cast(), empty, some) }.expect("memory");
    assert!(bytes(grown, 100).iter().all(|&byte| byte == 0));
    assert!(grown.len() == 100 && is_ours(grown.cast::<u8>().as_ptr()));
    // SAFETY: as above.
    let shrunk = unsafe { HEAP.shrink(grown.cast(), some, empty) }.expect("nothing fits");
    assert_eq!(shrunk.len(), 0);
}

#[test]
fn contents_survive_every_change_of_size_and_alignment() {
    let layouts: std::vec::Vec<Layout> =
        [1, 8, 9, 40, 64, 200, 1000, 1025, 36_000, 60_000, (1 << 20) + 1]
            .iter()
            .flat_map(|&size| {
                [1, 16, 32, 4096, 32 << 10, 64 << 10].map(|align| layout(size, align))
            })
            .collect();
    for &old in &layouts {
        for &new in &layouts {
            let block = HEAP.allocate(old).expect("memory");
            fill(block, old.size());
            let kept = old.size().min(new.size());
            let changed = if new.size() >= old.size() {
                // SAFETY: it was handed out for this layout.
                unsafe { HEAP.grow(block.cast(), old, new) }
            } else {
                // SAFETY: it was handed out for this layout.
                unsafe { HEAP.shrink(block.cast(), old, new) }
            };
            let changed = changed.expect("memory");
            assert!(changed.len() == new.size() && holds(changed, kept), "{old:?} to {new:?}");
            assert!(changed.cast::<u8>().addr().get().is_multiple_of(new.align()));
            // SAFETY: the block is live.
            let usable = unsafe { homenode::usable_size(changed.cast().as_ptr()) };
            assert!(usable.is_some_and(|usable| usable >= new.size()), "{old:?} to {new:?}");
            // SAFETY: it has this layout now.
            unsafe { HEAP.deallocate(changed.cast(), new) };
        }
    }
}

#[test]
fn what_a_zeroed_growth_adds_is_zero() {
    for (from, to) in [(1, 8), (3, 16), (100, 112), (500, 5000), (3 << 20, 7 << 20)] {
        let (old, new) = (layout(from, 8), layout(to, 8));
        let block = HEAP.allocate(old).expect("memory");
        fill(block, from);
        // SAFETY: it was handed out for this layout.
        let grown = unsafe { HEAP.grow_zeroed(block.cast(), old, new) }.expect("memory");
        assert!(holds(grown, from));
        assert!(bytes(grown, to)[from..].iter().all(|&byte| byte == 0), "{from} to {to}");
        // SAFETY: it has this layout now.
        unsafe { HEAP.deallocate(grown.cast(), new) };
    }
}

#[test]
fn a_request_past_all_memory_is_an_error() {
    let vast = layout(1 << 60, 8);
    assert!(HEAP.allocate(vast).is_err() && HEAP.allocate_zeroed(vast).is_err());
    let small = layout(8, 8);
    let block = HEAP.allocate(small).expect("memory");
    fill(block, 8);
    // SAFETY: it was handed out for this layout.
    assert!(unsafe { HEAP.grow(block.cast(), small, vast) }.is_err());
    assert!(holds(block, 8));
    // SAFETY: the block stayed.
    unsafe { HEAP.deallocate(block.cast(), small) };
}

/// Shrunk by less than an eighth, it keeps its length; only its alignment makes it move.
#[test]
fn a_block_longer_than_its_layout_leaves_its_new_neighbours_alone() {
    const MIB: usize = 1 << 20;
    let wide = layout(8 * MIB - MIB / 32, 16 * MIB);
    let holes: [_; 6] = std::array::from_fn(|_| {
        let hole = HEAP.allocate(wide).expect("memory");
        let neighbour = HEAP.allocate(layout(2 * MIB, 16)).expect("memory");
        fill(neighbour, 2 * MIB);
        (hole, neighbour)
    });
    let long = layout(17 * MIB / 2, 16);
    let short = layout(8 * MIB - MIB / 16, 16);
    let blocks: [_; 4] = std::array::from_fn(|_| {
        let block = HEAP.allocate(long).expect("memory");
        fill(block, long.size());
        // SAFETY: the block is live, of that layout.
        unsafe { HEAP.shrink(block.cast(), long, short) }.expect("memory")
    });
    for (hole, _) in &holes {
        // SAFETY: the block is live, of that layout.
        unsafe { HEAP.deallocate(hole.cast(), wide) };
    }
    for block in blocks {
        // SAFETY: the block is live, of that layout.
        let block = unsafe { HEAP.grow(block.cast(), short, wide) }.expect("memory");
        assert!(holds(block, short.size()));
    }
    for _ in 0..100 {
        let zeroed = HEAP.allocate_zeroed(layout(2 * MIB, 16)).expect("memory");
        assert!(bytes(zeroed, 2 * MIB).iter().all(|&byte| byte == 0), "written by another");
    }
    assert!(holes.iter().all(|(_, neighbour)| holds(*neighbour, 2 * MIB)), "overwritten");
}
