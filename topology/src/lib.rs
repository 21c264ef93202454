//! The machine as a user of homenode asks about it: nodes and tiers of memory, how far and how fast they are,
//! and which of them a network card, a disk or a GPU is next to.
//!
//! The allocator itself reads little of this, and reads it without malloc; this package stands on hwloc,
//! which allocates.  A [`Machine`] is a copy of what hwloc found, in plain data.
//!
//! | module | what it does |
//! |---|---|
//! | `machine` | the plain data, and the questions put to it |
//! | `read` | fills it from hwloc: this machine, a synthetic one, one kept as XML |
//! | `draw` | shows it as text |
//!
//! ```
//! use homenode_topology::Machine;
//!
//! let machine = Machine::from_synthetic("node:2 core:2 pu:1")?;
//! assert_eq!(machine.nodes[1].cpus, [2, 3]);
//! let error = machine.device("eth7").unwrap_err();
//! assert_eq!(error.to_string(), "there is no device \"eth7\": hwloc sees none at all");
//! # Ok::<(), homenode_topology::Error>(())
//! ```

mod draw;
mod error;
mod machine;
mod read;

pub use error::Error;
pub use machine::{Access, Cache, Device, DeviceKind, Distances, Machine, Node, Tier};
