//! The parts of the benches: homenode against its peers, and the guard of its hit paths.
//!
//! | module | what it holds |
//! |---|---|
//! | [`stats`] | medians, quartiles, sign intervals: pure |
//! | [`table`] | text tables: pure |
//! | [`rows`] | what is measured, by which program, and the bars |
//! | [`contestant`] | who is measured, and how a program is started under it |
//! | [`peers`] | the peers: built, found or skipped |
//! | [`driver`] | the measured programs: built, started once, their lines read |
//! | [`rounds`] | the interleaved rounds of one comparison |
//! | [`load`] | what else the machine did meanwhile |
//! | [`verdict`] | homenode against peers: ratios, bars, verdicts |
//! | [`plots`] | that, as SVG |
//! | [`paired`] | one against another, round by round: builds, drains |
//! | [`programs`] | real programs: CPU time, resident memory |
//! | [`hitpath`] | a disassembly and the straight line a hit takes through it: pure |
//! | [`objdump`] | that disassembly, from a built library |
//! | [`ledger`] | the kept instruction counts, and how a build differs from them: pure |

pub mod contestant;
pub mod driver;
pub mod error;
pub mod hitpath;
pub mod ledger;
pub mod load;
pub mod objdump;
pub mod paired;
pub mod peers;
pub mod plots;
pub mod programs;
pub mod rounds;
pub mod rows;
pub mod stats;
pub mod table;
pub mod verdict;

pub use error::{Error, Result};
