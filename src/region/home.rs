//! Where a slice's pages are: on its node, spread over several for one large block, or asked for.
//!
//! Apart from their callers, whose frames are small: most processes never come here after the start.
//!
//! A slice is given to its node at the start, whole or by its seeds, whose node all has that they grow to (see
//! [`super::lengthen`]): a sandbox that is entered later may not allow it.  A
//! refusal (`EPERM` in a sandbox) leaves the first touch to decide, and is counted in `sys`.

use super::extent::PARTS;
use super::geometry;
use super::slice::Slice;
use crate::base::config::{COMPOUND_BYTES, PAGES_ASKED, SPLITS_MAX};
use crate::base::ids::{CompoundId, KernelNode, NodeIndex};
use crate::policy::{self, Plan};
use crate::sys::fault::splits;
use crate::sys::mem;
use crate::topo;

impl Slice {
    /// Prefers node `node`, the slice's, for the pages of a part of it, from `offset` on.
    pub(super) fn go_home(&self, node: NodeIndex, offset: usize, bytes: usize) {
        if let Some(kernel) = topo::preferred(node)
            && !policy::current().1.leaves_placement()
        {
            self.prefer(kernel, offset, bytes);
        }
    }

    /// Prefers node `node`, the slice's, for all of it that is mapped.
    pub(super) fn settle(&self, node: NodeIndex) {
        let extent = self.extent();
        if extent.has_holes {
            (0..PARTS).map(|number| extent.part(number)).for_each(|part| {
                self.go_home(node, part.start, part.len());
            });
        } else {
            self.go_home(node, 0, geometry().bytes);
        }
    }

    /// As [`Slice::go_home`], for a node by its number in the kernel.
    #[inline(never)]
    pub(super) fn prefer(&self, kernel: KernelNode, offset: usize, bytes: usize) {
        let _ = mem::prefer_node(self.base() + offset, bytes, kernel.0);
    }

    /// Spreads the pages that compounds will have over the nodes of a plan, if [`can_spread`], and is then undone by
    /// [`Slice::gather`].  Where the system refuses, some stay at home.
    #[inline(never)]
    pub(crate) fn spread(&self, first: CompoundId, count: u32, plan: &Plan) {
        let base = self.base() + first.offset();
        if plan.is_even() {
            let bytes = count as usize * COMPOUND_BYTES;
            let _ = mem::interleave(base, bytes, &plan.numbers());
            return;
        }
        // Each node gets a part as long as its weight.
        let all: usize = plan.turns().map(|(_, weight)| usize::from(weight)).sum();
        let part_end = |sum: usize| count as usize * sum / all * COMPOUND_BYTES;
        let mut sum = 0;
        for (node, weight) in plan.turns() {
            let start = part_end(sum);
            sum += usize::from(weight);
            let bytes = part_end(sum) - start;
            if bytes > 0 {
                let _ = mem::prefer_node(base + start, bytes, topo::number(node).0);
            }
        }
    }

    /// Takes back what [`Slice::spread`] did: the compounds lose their pages, and are of the slice's node.
    pub(crate) fn gather(&self, node: NodeIndex, first: CompoundId, count: u32) {
        self.empty(first, count);
        self.go_home(node, first.offset(), count as usize * COMPOUND_BYTES);
    }

    /// Drops the pages that lie whole between two addresses: a base page may be longer than a run, and then the
    /// rest of it is another's.
    pub(crate) fn empty_pages(&self, start: usize, end: usize) {
        let page = geometry().page;
        let [start, end] = [start.next_multiple_of(page), end / page * page];
        debug_assert!(start >= self.base(), "the range is of this slice");
        if start < end {
            // A refusal leaves them resident.
            let _ = mem::decommit(start, end - start);
        }
    }

    /// Drops the pages of compounds.
    pub(crate) fn empty(&self, first: CompoundId, count: u32) {
        if count > 0 {
            // A refusal leaves pages where they are, and they are used all the same.
            let _ = mem::decommit(self.base() + first.offset(), count as usize * COMPOUND_BYTES);
        }
    }

    /// Has the pages of a part of the slice made now, and asks where they are; false, and they are given
    /// back: not all on nodes of the plan.  Where the system refuses to tell, it is believed.
    #[inline(never)]
    pub(crate) fn hold(&self, offset: usize, bytes: usize, plan: &Plan) -> bool {
        if topo::is_fake() {
            return true;
        }
        let page = geometry().page;
        let start = self.base() + offset / page * page;
        let end = (self.base() + offset + bytes).next_multiple_of(page);
        // Step by step: a block that is longer than the node must not fill the whole machine first.
        let is_held = (start..end).step_by(COMPOUND_BYTES).all(|at| {
            let bytes = COMPOUND_BYTES.min(end - at);
            mem::touch(at, bytes, page).is_ok() && is_on(at, bytes, plan)
        });
        if !is_held {
            self.empty_pages(self.base() + offset, self.base() + offset + bytes);
        }
        is_held
    }
}

/// True where a block may be spread over nodes page by page: real ones, and while calls that split maps are to be had.
pub(crate) fn can_spread() -> bool {
    !topo::is_fake() && splits() < SPLITS_MAX
}

/// True when all pages of a range that has them are on nodes of a plan.
fn is_on(address: usize, bytes: usize, plan: &Plan) -> bool {
    let page = geometry().page;
    let nodes = plan.numbers();
    let mut found = [0; PAGES_ASKED];
    (address..address + bytes).step_by(page * PAGES_ASKED).all(|at| {
        let count = PAGES_ASKED.min((address + bytes - at) / page);
        let Some(found) = found.get_mut(..count) else { return true };
        match mem::pages_of(at, page, found) {
            Ok(()) => found.iter().all(|&node| {
                // No page, or one that is just being moved, is on no wrong node.
                u32::try_from(node).is_ok_and(|node| nodes.contains(node)) || node < 0
            }),
            Err(_) => true,
        }
    })
}
