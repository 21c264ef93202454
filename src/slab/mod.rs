//! slab: spans of equal objects, one pool per node and class.

mod check;
mod pool;
mod span;
#[cfg(test)]
mod tests;

pub(crate) use check::{check, objects_out};
pub(crate) use pool::{Homecoming, census, give, is_out, object_bytes, take, trim};
pub(crate) use span::Refusal;
