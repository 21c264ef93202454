//! slab: spans of equal objects, one pool per node and class.

mod check;
mod pool;
mod span;
#[cfg(test)]
mod tests;

pub(crate) use check::check;
pub(crate) use pool::{Homecoming, census, give, object_bytes, take, trim};
