//! pageheap: compounds cut into runs, large blocks of whole compounds, and the handlers' reserve.
//!
//! What is handed out is said by the heads' run maps; the lists here are derived, and rebuilt from
//! the heads after a fork that left the lock behind.

mod bump;
pub(crate) mod emergency;
pub(crate) mod large;
mod park;
mod runs;
mod slot;
#[cfg(test)]
mod tests;

pub(crate) use runs::{
    RunsBack, census, gaps, give_runs, purge_runs, rebuild_check, refcounts, take_runs,
};
