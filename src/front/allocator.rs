//! The allocator of single collections, by the trait of the crate `allocator-api2`.
#![allow(unsafe_code, reason = "Allocator is an unsafe trait")]

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::{HomeNode, layout};

/// A slice of no bytes at an address of the layout's alignment, where nothing needs to be.
fn nothing(layout: Layout) -> NonNull<[u8]> {
    NonNull::slice_from_raw_parts(layout.dangling_ptr(), 0)
}

/// The block as a slice of its layout's length; null is an error.
fn slice(block: *mut u8, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    let start = NonNull::new(block).ok_or(AllocError)?;
    Ok(NonNull::slice_from_raw_parts(start, layout.size()))
}

/// Gives a block another layout; zero-sized ones are no blocks.
///
/// # Safety
/// `block` was handed out for `old`, and is live.
unsafe fn change(
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() == 0 {
        return HomeNode::new().allocate(new);
    }
    if new.size() == 0 {
        // SAFETY: the caller's promise.
        unsafe { layout::free(block.as_ptr(), old) };
        return Ok(nothing(new));
    }
    // SAFETY: the caller's promise.
    slice(unsafe { layout::change(block.as_ptr(), old, new) }, new)
}

// SAFETY: blocks are as long and aligned as their layouts say, and live until they are freed, whichever
// copy of the allocator, which has no state, does that.
unsafe impl Allocator for HomeNode {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return Ok(nothing(layout));
        }
        slice(layout::alloc(layout), layout)
    }

    #[inline]
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return Ok(nothing(layout));
        }
        slice(layout::alloc_zeroed(layout), layout)
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: the caller's promise.
            unsafe { layout::free(block.as_ptr(), layout) };
        }
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { change(block, old, new) }
    }

    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if old.size() == 0 {
            return self.allocate_zeroed(new);
        }
        // SAFETY: the caller's promise.
        let grown = unsafe { change(block, old, new) }?;
        // SAFETY: the block has grown: its old length is within it.
        let tail = unsafe { grown.cast::<u8>().add(old.size()) };
        // SAFETY: what follows the old length, up to the new one, is the block's and nobody else's.
        unsafe { tail.write_bytes(0, new.size() - old.size()) };
        Ok(grown)
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { change(block, old, new) }
    }
}
