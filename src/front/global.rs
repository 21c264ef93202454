//! The allocator of a Rust program.
#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]

use core::alloc::{GlobalAlloc, Layout};

use super::layout;

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
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        layout::alloc(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { layout::free(ptr, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        layout::alloc_zeroed(layout)
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size is one of a layout with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller's promise.
        unsafe { layout::change(ptr, layout, new) }
    }
}
