//! A Rust plugin with homenode as its allocator: it may be closed, and its code stays.
#![allow(unsafe_code, reason = "an exported name")]

#[global_allocator]
static ALLOCATOR: homenode::HomeNode = homenode::HomeNode::new();

/// Allocates and frees; how many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_churn() -> usize {
    (0..2000).map(|len| vec![1_u8; len].len()).sum()
}
