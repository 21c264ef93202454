//! policy: on which nodes memory is to be.
//!
//! A [`Policy`] names nodes by the kernel's numbers, and has a text form ([`text`]).  A [`Plan`] is a policy
//! put to the nodes of this machine: from which slices memory is taken, in which order.

mod plan;
mod process;
mod text;

pub(crate) use plan::{Order, Plan, Turns};
pub use process::SetError;
pub(crate) use process::{ask, current, is_mixed, is_strict, refresh, set, start, token};
pub use text::{ParseError, Reason};

use crate::base::nodemask::NodeMask;

/// Nodes that a weight can be given to, at most.
pub(crate) const WEIGHTS_MAX: usize = 64;

/// How memory is placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// On the node of the CPU that allocates, or the nearest that has memory.
    Local,
    /// As the kernel places it at the first touch, and moves it later where NUMA balancing is on.
    FirstTouch,
    /// On some nodes and nowhere else: a request fails where they have no memory left.
    Bind,
    /// On some nodes while they have memory, the nearest to the CPU first.
    Preferred,
    /// On some nodes in turn.
    Interleave,
    /// On some nodes in turn, each as often as its weight.
    WeightedInterleave,
}

/// Where memory is to be: a mode and its nodes, by the kernel's numbers.
///
/// ```
/// use homenode::{Mode, Policy};
///
/// let policy: Policy = "weighted:0*3,2".parse()?;
/// assert_eq!(policy.mode(), Mode::WeightedInterleave);
/// assert_eq!((policy.weight(0), policy.weight(2), policy.weight(1)), (3, 1, 0));
/// assert_eq!(policy.to_string(), "weighted:0*3,2");
/// # Ok::<(), homenode::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    mode: Mode,
    nodes: NodeMask,
    /// Of the nodes in rising order; 1 where there is no weight to tell.
    weights: [u8; WEIGHTS_MAX],
}

impl Policy {
    /// Memory on the node of the CPU that allocates.
    pub const LOCAL: Self = Self::of(Mode::Local, NodeMask::EMPTY);
    /// Memory where the kernel places it at the first touch.
    pub const FIRST_TOUCH: Self = Self::of(Mode::FirstTouch, NodeMask::EMPTY);

    const fn of(mode: Mode, nodes: NodeMask) -> Self {
        Self { mode, nodes, weights: [1; WEIGHTS_MAX] }
    }

    /// Memory on `nodes` alone.
    #[must_use]
    pub const fn bind(nodes: NodeMask) -> Self {
        Self::of(Mode::Bind, nodes)
    }

    /// Memory on `nodes` while they have some.
    #[must_use]
    pub const fn preferred(nodes: NodeMask) -> Self {
        Self::of(Mode::Preferred, nodes)
    }

    /// Memory on `nodes` in turn.
    #[must_use]
    pub const fn interleave(nodes: NodeMask) -> Self {
        Self::of(Mode::Interleave, nodes)
    }

    /// Memory on nodes in turn, each as often as its weight, 1 to 255.  None where a weight is 0, a node is
    /// named twice or past the kernel's last, or more than 64 are named.
    #[must_use]
    pub fn weighted(nodes: impl IntoIterator<Item = (u32, u8)>) -> Option<Self> {
        let mut policy = Self::of(Mode::WeightedInterleave, NodeMask::EMPTY);
        nodes.into_iter().all(|(node, weight)| policy.add(node, weight)).then_some(policy)
    }

    /// Adds a node and its weight.  False, and nothing is added: see [`Policy::weighted`].
    fn add(&mut self, node: u32, weight: u8) -> bool {
        let named = self.nodes.len();
        if weight == 0 || named >= WEIGHTS_MAX || self.nodes.contains(node) {
            return false;
        }
        let rank = self.nodes.iter().take_while(|&other| other < node).count();
        if !self.nodes.insert(node) {
            return false;
        }
        self.weights.copy_within(rank..named, rank + 1);
        self.weights[rank] = weight;
        true
    }

    /// How memory is placed.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The nodes, by the kernel's numbers; none for a mode that names none.
    #[must_use]
    pub const fn nodes(&self) -> &NodeMask {
        &self.nodes
    }

    /// How often `node` has its turn: 0 where it has none, 1 for a mode without weights.
    #[must_use]
    pub fn weight(&self, node: u32) -> u8 {
        let rank = self.nodes.iter().position(|other| other == node);
        rank.map_or(0, |rank| self.weights.get(rank).copied().unwrap_or(1))
    }
}
