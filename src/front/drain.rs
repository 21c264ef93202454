//! Drains and trims, as callers see them.

use super::busy::Busy;
use super::{checked, prepare, trim_spans};
use crate::base::ids::CpuId;
use crate::pageheap::{self, emergency, large};
use crate::percpu::{self, Drained, How};
use crate::{policy, region};

/// Sends the objects that CPU `cpu`'s slab holds to the layers below.  A CPU that does not exist
/// has none.  From a signal handler that interrupted the allocator, the drain is pending.
pub fn drain_cpu(cpu: u32, how: How) -> Drained {
    let Some(_busy) = Busy::enter() else { return Drained::Pending };
    if prepare() { percpu::drain_cpu(CpuId(cpu), how) } else { Drained::Objects(0) }
}

/// Drains every CPU; pending if one is.
pub fn drain_all(how: How) -> Drained {
    let Some(_busy) = Busy::enter() else { return Drained::Pending };
    if prepare() { percpu::drain_all(how) } else { Drained::Objects(0) }
}

/// Drains every CPU and gives the pages of empty compounds back to the system, and those of free runs in others;
/// how many compounds.
pub fn trim() -> u32 {
    let Some(_busy) = Busy::enter() else { return 0 };
    if !prepare() {
        return 0;
    }
    if checked::is_on() {
        checked::release(true);
    }
    policy::refresh();
    percpu::drain_all(How::Auto);
    trim_spans();
    emergency::trim();
    large::empty_slots();
    region::open_slices().for_each(|(_, slice)| pageheap::purge_runs(slice));
    region::open_slices().map(|(_, slice)| slice.purge()).sum()
}
