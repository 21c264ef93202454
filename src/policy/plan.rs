//! A policy put to the nodes of this machine.

use super::{Mode, Policy};
use crate::base::config::NODES_MAX;
use crate::base::ids::NodeIndex;
use crate::base::nodemask::NodeMask;
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};
use crate::topo;

/// Which slices memory is taken from.  Nodes are bits, by index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    mode: Mode,
    /// Nodes to take from.
    first: u64,
    /// Nodes to take from when those have none.
    then: u64,
    /// Turns of each node, where memory is spread.
    weights: [u8; NODES_MAX],
}

impl Plan {
    /// Memory on the CPU's own node, before the machine is known.
    pub(super) const LOCAL: Self =
        Self { mode: Mode::Local, first: 1, then: 0, weights: [0; NODES_MAX] };

    /// What `policy` means on this machine; none where it has, or the process may use, none of the nodes.
    pub(super) fn of(policy: &Policy) -> Option<Self> {
        let mut plan = Self::LOCAL;
        plan.become_plan(policy).then_some(plan)
    }

    /// Becomes what `policy` means on this machine.  False: see [`Plan::of`].
    pub(super) fn become_plan(&mut self, policy: &Policy) -> bool {
        let usable = topo::usable();
        *self = Self { mode: policy.mode, first: usable, ..Self::LOCAL };
        if matches!(policy.mode, Mode::Local | Mode::FirstTouch) {
            return true;
        }
        self.first = 0;
        for node in policy.nodes.iter() {
            let Some(index) = topo::by_number(node) else { continue };
            if usable >> index.get() & 1 != 0 {
                self.first |= 1 << index.get();
                self.weights[index.get()] = policy.weight(node);
            }
        }
        if policy.mode != Mode::Bind {
            self.then = usable & !self.first;
        }
        self.first != 0
    }

    /// Memory on one node while it has some.
    pub(crate) fn on(node: NodeIndex) -> Self {
        let first = 1 << node.get();
        Self {
            mode: Mode::Preferred,
            first,
            then: topo::usable() & !first,
            weights: [0; NODES_MAX],
        }
    }

    /// The node whose memory a CPU of node `node` caches.
    pub(crate) fn home(&self, node: NodeIndex) -> NodeIndex {
        let among = if self.is_spread() { self.first | self.then } else { self.first };
        topo::nearest(node, among).unwrap_or(node)
    }

    /// True when memory is taken from several nodes in turn.
    pub(crate) const fn is_spread(&self) -> bool {
        matches!(self.mode, Mode::Interleave | Mode::WeightedInterleave)
            && !self.first.is_power_of_two()
    }

    /// True when all nodes that memory is spread over have as many turns.
    pub(crate) fn is_even(&self) -> bool {
        let mut weights = self.turns().map(|(_, weight)| weight);
        let first = weights.next();
        weights.all(|weight| Some(weight) == first)
    }

    /// True when memory elsewhere is worse than none, and there is an elsewhere.
    pub(crate) fn is_strict(&self) -> bool {
        matches!(self.mode, Mode::Bind) && topo::nodes() > 1
    }

    /// True when slices are not given to their nodes.
    pub(crate) const fn leaves_placement(&self) -> bool {
        matches!(self.mode, Mode::FirstTouch)
    }

    /// The nodes that memory is spread over, by the kernel's numbers, and how often each has its turn.
    pub(crate) fn turns(&self) -> impl Iterator<Item = (NodeIndex, u8)> {
        let nodes = (0..NODES_MAX).filter(|node| self.first >> node & 1 != 0);
        nodes.map(|node| (NodeIndex::new(node), self.weights[node]))
    }

    /// The nodes that memory is spread over, by the kernel's numbers.
    pub(crate) fn numbers(&self) -> NodeMask {
        self.turns().map(|(node, _)| topo::number(node).0).collect()
    }

    /// The nodes to take from, from `home` on.
    pub(crate) const fn order(&self, home: NodeIndex) -> Order {
        Order { from: home, tiers: [self.first, self.then] }
    }
}

/// What was taken from each node in turn, in bytes: the next turn is of the node that has had the least for its
/// weight.  So sizes that come in any rhythm are spread evenly.  Zero bytes are none.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Token of the policy that it counts for.
    policy: AtomicU32,
    taken: [AtomicU64; NODES_MAX],
}

impl Turns {
    pub(crate) const fn new() -> Self {
        Self { policy: AtomicU32::new(0), taken: [const { AtomicU64::new(0) }; NODES_MAX] }
    }

    /// The node whose turn it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn next(&self, plan: &Plan) -> NodeIndex {
        let token = super::token();
        if self.policy.swap(token, Ordering::Relaxed) != token {
            self.taken.iter().for_each(|taken| taken.store(0, Ordering::Relaxed));
        }
        let taken = |node: NodeIndex| self.taken[node.get()].load(Ordering::Relaxed);
        let least = plan.turns().reduce(|least, next| {
            let [had, has] = [least, next].map(|(node, _)| taken(node));
            if has * u64::from(least.1) < had * u64::from(next.1) { next } else { least }
        });
        least.map_or(NodeIndex::ZERO, |(node, _)| node)
    }

    /// Notes that `bytes` were taken from a node, where that counts.  Beside other threads a count may be lost.
    pub(crate) fn note(&self, plan: &Plan, node: NodeIndex, bytes: usize) {
        if !plan.is_spread() {
            return;
        }
        let taken = &self.taken[node.get()];
        taken.store(taken.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }
}

/// Nodes in the order in which they are asked for memory.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    from: NodeIndex,
    /// The first before the second; of either, the nearest to `from` first, which may be `from`.
    tiers: [u64; 2],
}

impl Iterator for Order {
    type Item = NodeIndex;

    fn next(&mut self) -> Option<NodeIndex> {
        let tier = self.tiers.iter().find(|tier| **tier != 0)?;
        let node = topo::nearest(self.from, *tier)?;
        self.tiers.iter_mut().for_each(|tier| *tier &= !(1 << node.get()));
        Some(node)
    }
}
