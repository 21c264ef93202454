//! Blocks by layout, as Rust asks for them: a layout names its class, so the caller computes it, and the
//! hit path is told.  A block's own class may be another, once it was changed in place: so a free compares
//! the class byte, and a change of size asks it.
//!
//! What is inlined is small: for a constant layout up to 1 KiB the class is a constant and nothing else
//! is left but the call; for another, a comparison and a look-up (see [`Class::of_small_layout`]).
#![allow(unsafe_code, reason = "blocks are raw memory at this layer's edge")]

use core::alloc::Layout;

use super::{alloc_aligned, hit, outgrow, replace, resize, serves, usable_size};
use crate::base::classes::Class;
use crate::sys::mem;

/// Hands out a block; null when there is no memory.
///
/// Budget: 18 instructions, and 6 when the layout is no constant.
#[inline]
pub(super) fn alloc(layout: Layout) -> *mut u8 {
    match Class::of_small_layout(layout) {
        Some(class) => hit::alloc_class(class.index()),
        None if layout.align() <= 16 => hit::alloc(layout.size()),
        None => alloc_aligned(layout.size(), layout.align()),
    }
}

/// Hands out a zeroed block; null when there is no memory.
#[inline]
pub(super) fn alloc_zeroed(layout: Layout) -> *mut u8 {
    if Class::of_small_layout(layout).is_none() {
        return super::alloc_zeroed(layout.size(), layout.align());
    }
    let block = alloc(layout);
    if !block.is_null() {
        // SAFETY: the block is fresh, as long as its layout, and nobody else's.
        unsafe { block.write_bytes(0, layout.size()) };
    }
    block
}

/// Takes a block back.
///
/// Budget: 24 instructions, and 6 when the layout is no constant.
///
/// # Safety
/// `block` was handed out for this layout, and is not used any more.
#[inline]
pub(super) unsafe fn free(block: *mut u8, layout: Layout) {
    match Class::of_small_layout(layout) {
        // SAFETY: the caller's promise.
        Some(class) => unsafe { hit::free_class(block, class.index()) },
        // SAFETY: the caller's promise.
        None => unsafe { hit::free(block) },
    }
}

/// Gives a block of layout `old` the layout `new`, in place or at a new address; null when there is no
/// memory, and the old block stays.
///
/// # Safety
/// `block` was handed out for `old`, and is live.
pub(super) unsafe fn change(block: *mut u8, old: Layout, new: Layout) -> *mut u8 {
    let may_stay = block.addr() & (new.align() - 1) == 0;
    if may_stay
        && let (Some(had), Some(wanted)) =
            (Class::of_small_layout(old), Class::of_small_layout(new))
        && had <= wanted
    {
        // SAFETY: the caller's promise.
        return unsafe { grow_small(block, (had, wanted), old.size()) };
    }
    // SAFETY: the caller's promise.
    unsafe { change_any(block, old, new, may_stay) }
}

/// [`change`] for all but small blocks that grow: apart, so that those keep few registers.
///
/// # Safety
/// As [`change`].
#[inline(never)]
unsafe fn change_any(block: *mut u8, old: Layout, new: Layout, may_stay: bool) -> *mut u8 {
    // SAFETY: the caller's promise.
    if may_stay && unsafe { stays(block, old, new) } {
        return block;
    }
    if Class::of_layout(new.size(), new.align()).is_none() {
        // SAFETY: the block is live.
        let usable = unsafe { usable_size(block) }.unwrap_or(old.size());
        // A block that was shrunk in place may be longer than what it is to become.
        if usable < new.size() {
            // SAFETY: the caller's promise.
            return unsafe { outgrow(block, usable, new.size(), new.align()) };
        }
    }
    let moved = alloc(new);
    if moved.is_null() {
        // A shrink that finds no smaller block is served by the one it has.
        return if may_stay && new.size() <= old.size() { block } else { moved };
    }
    // SAFETY: both blocks are live and apart, and at least that long; the caller gives the old one up.
    unsafe { replace(block, moved, old.size().min(new.size())) };
    moved
}

/// Gives a block of the first class, of which `bytes` are in use, the second class, which is no smaller.
///
/// # Safety
/// As [`change`].
unsafe fn grow_small(block: *mut u8, (had, wanted): (Class, Class), bytes: usize) -> *mut u8 {
    if had == wanted {
        return block;
    }
    let moved = hit::alloc_class_directly(wanted.index());
    if !moved.is_null() {
        // SAFETY: both blocks are live, apart, and at least of their classes.
        unsafe { mem::copy_small(block.expose_provenance(), moved.expose_provenance(), bytes) };
        // SAFETY: the caller gives the old block up.
        unsafe { hit::free_class_directly(block, had.index()) };
    }
    moved
}

/// True when the block serves `new`, whose alignment it has, where it is: its class byte says so, or it is
/// a large block and could be resized.
///
/// # Safety
/// As [`change`].
unsafe fn stays(block: *mut u8, old: Layout, new: Layout) -> bool {
    // SAFETY: the block is live.
    if unsafe { serves(block, new.size()) } {
        return true;
    }
    if Class::of_layout(old.size(), old.align()).is_some() {
        return false;
    }
    // SAFETY: the block is live.
    let usable = unsafe { usable_size(block) }.unwrap_or(old.size());
    resize(block.expose_provenance(), usable, new.size())
}
