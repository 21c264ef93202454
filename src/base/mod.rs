//! base: pure facts and small tools; knows no system and no other layer.

pub(crate) mod bits;
pub(crate) mod classes;
pub(crate) mod config;
pub(crate) mod ids;
pub(crate) mod nodemask;
pub(crate) mod stack;
pub(crate) mod sync;
