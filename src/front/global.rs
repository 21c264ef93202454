//! The allocator of a Rust program.
#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use core::alloc::{GlobalAlloc, Layout};

use super::{alloc_layout, alloc_zeroed, free, realloc, usable_size};

/// The allocator of a Rust program:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: homenode::HomeNode = homenode::HomeNode::new();
///
/// assert_eq!(vec![7; 1000].iter().sum::<i32>(), 7000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HomeNode(());

impl HomeNode {
    /// The allocator; it starts at its first use.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

// SAFETY: blocks are as long and aligned as their layouts say, live until they are freed, and never
// handed out twice; nothing here unwinds.
unsafe impl GlobalAlloc for HomeNode {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        alloc_layout(layout)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { free(ptr) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        alloc_zeroed(layout.size(), layout.align())
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block is live.
        let usable = unsafe { usable_size(ptr) }.unwrap_or(layout.size());
        // SAFETY: the caller's promise.
        unsafe { realloc(ptr, usable, new_size, layout.align()) }
    }
}
