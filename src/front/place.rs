//! Where memory is: the policy of the process, blocks on a node of the caller's choice, and questions.
#![allow(unsafe_code, reason = "blocks are raw memory at this layer's edge")]

use core::fmt;
use core::ptr::NonNull;

use super::busy::Busy;
use super::{checked, free, pointer, prepare, prepare_and, start, usable_size};
use crate::base::classes::{CLASS_BYTES_MAX, Class};
use crate::base::config::{GROUP_BYTES, PAGES_ASKED};
use crate::base::ids::NodeIndex;
use crate::pageheap::large::{self, Want};
use crate::percpu::{self, How};
use crate::policy::{self, Plan, Policy, SetError};
use crate::sys::{cpu, mem};
use crate::{region, topo};

/// Why there is no block on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeError {
    /// The machine has no node of this number with memory that the process may use.
    NoSuchNode,
    /// There is no memory, on this node or another.
    Exhausted,
    /// The block is not ours.
    NotOurs,
}

impl fmt::Display for NodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoSuchNode => "no node of this number has memory that the process may use",
            Self::Exhausted => "there is no memory",
            Self::NotOurs => "the block is not homenode's",
        })
    }
}

impl core::error::Error for NodeError {}

/// Makes `policy` the process's, for memory that is handed out from now on.  What is handed out stays where it
/// is.  What CPUs cache is drained first; a CPU whose drain is pending hands out what it has until its next slow path.
/// Free memory of before is used again where it is: [`trim`](super::trim) gives it back.
///
/// # Errors
/// The policy before stays: see [`SetError`].
pub fn set_policy(policy: &Policy) -> Result<(), SetError> {
    let _busy = Busy::enter().ok_or(SetError::NotNow)?;
    if !prepare() {
        return Err(SetError::NotNow);
    }
    topo::refresh();
    policy::set(policy)?;
    // What was cached and parked is of homes of before.
    percpu::drain_all(How::Auto);
    large::empty_slots();
    Ok(())
}

/// The policy of the process.
#[must_use]
pub fn process_policy() -> Policy {
    start::ensure();
    *policy::current().0
}

/// Hands out `size` bytes at 16-byte alignment on a node, by the kernel's number, while that has memory, and
/// else on the nearest that has some, whatever the policy of the process.
///
/// # Errors
/// `NoSuchNode` and `Exhausted`.
pub fn alloc_on_node(size: usize, node: u32) -> Result<NonNull<u8>, NodeError> {
    if !start::ensure() {
        return Err(NodeError::Exhausted);
    }
    NonNull::new(block_on(size, 16, usable_node(node)?)).ok_or(NodeError::Exhausted)
}

/// A block on a node: `size` bytes at `align`; null where there is no memory.
fn block_on(size: usize, align: usize, home: NodeIndex) -> *mut u8 {
    if checked::is_on() {
        return checked::alloc_from(size, false, |padded| (raw_on(padded, align, home), false));
    }
    raw_on(size, align, home)
}

fn raw_on(size: usize, align: usize, home: NodeIndex) -> *mut u8 {
    let Some(_busy) = Busy::enter() else { return super::alloc_in_handler(size, align) };
    let plan = Plan::on(home);
    pointer(match Class::of_layout(size, align) {
        Some(class) => prepare_and(|| percpu::allocate_on(home, class, &plan).ok()),
        None => {
            let take = |node| large::take(node, size, align, Want::Block, &plan).ok();
            let block = prepare_and(|| plan.order(home).find_map(take));
            block.map(|block| block.address)
        }
    })
}

/// The home node of an address, by the kernel's number: the node that its memory is given to.  None for memory
/// that is not ours.  Asks the system nothing, and is no word on pages that the kernel had to put elsewhere:
/// see [`pages_of`].
#[must_use]
pub fn node_of(address: *const u8) -> Option<u32> {
    region::locate(address.expose_provenance()).map(|place| topo::number(place.node).0)
}

/// Asks the system where pages are: `nodes` gets one number a base page, from the page of `address` on, the
/// node's or a negative error (`-ENOENT`: never touched).  Of any memory of the process.
///
/// # Errors
/// The system's error number, where it refuses to tell.
pub fn pages_of(address: *const u8, nodes: &mut [i32]) -> Result<(), i32> {
    let page = cpu::page_bytes();
    let mut at = address.expose_provenance() / page * page;
    for some in nodes.chunks_mut(PAGES_ASKED) {
        mem::pages_of(at, page, some).map_err(|errno| errno.0)?;
        at += some.len() * page;
    }
    Ok(())
}

/// Brings a block to a node, by the kernel's number; its new address, at the same alignment.  A block whose home
/// that is stays.
///
/// # Errors
/// See [`NodeError`]; the block stays as it is.
///
/// # Safety
/// `block` was handed out, is live, and nobody uses it meanwhile, or its old address afterwards.
pub unsafe fn migrate(block: NonNull<u8>, node: u32) -> Result<NonNull<u8>, NodeError> {
    // SAFETY: the caller's promise.
    let usable = unsafe { usable_size(block.as_ptr()) }.ok_or(NodeError::NotOurs)?;
    let home = usable_node(node)?;
    if node_of(block.as_ptr()) == Some(node) {
        return Ok(block);
    }
    let [from, align] = [block.addr().get(), alignment(block, usable)];
    let moved = NonNull::new(block_on(usable, align, home)).ok_or(NodeError::Exhausted)?;
    let to = moved.addr().get();
    let page = cpu::page_bytes();
    if usable > CLASS_BYTES_MAX && [from, to, usable].iter().all(|bytes| bytes.is_multiple_of(page))
    {
        // SAFETY: both blocks are live and apart, and at least that long; what is untouched stays so.
        unsafe { mem::copy_sparse(from, to, usable) };
    } else {
        // SAFETY: as above.
        unsafe { mem::copy(from, to, usable) };
    }
    // SAFETY: the caller gives the old block up.
    unsafe { free(block.as_ptr()) };
    Ok(moved)
}

/// The alignment that a block has by its class, or where it is of none, by its address.
fn alignment(block: NonNull<u8>, usable: usize) -> usize {
    let by_address = block.addr().trailing_zeros().min(GROUP_BYTES.ilog2());
    if region::class_byte(block.addr().get()) == 0 {
        1 << by_address
    } else {
        1 << by_address.min(usable.trailing_zeros())
    }
}

/// The node of a number, if the process may use its memory.
fn usable_node(number: u32) -> Result<NodeIndex, NodeError> {
    let usable = |home: &NodeIndex| topo::usable() >> home.get() & 1 != 0;
    topo::by_number(number).filter(usable).ok_or(NodeError::NoSuchNode)
}
