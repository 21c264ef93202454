//! Sets of nodes, by the kernel's numbers.

use core::fmt;

/// Nodes that a kernel can name: 0 to 1023 (its largest `MAX_NUMNODES`).
pub(crate) const KERNEL_NODES: usize = 1024;
const WORDS: usize = KERNEL_NODES / 64;

/// A set of nodes: bit n is node n of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeMask([u64; WORDS]);

impl NodeMask {
    /// No node.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The set of one node; empty where the kernel has no such number (1024 and more).
    #[must_use]
    pub fn one(node: u32) -> Self {
        let mut mask = Self::EMPTY;
        mask.insert(node);
        mask
    }

    /// Adds a node.  False: the kernel has no such number.
    pub fn insert(&mut self, node: u32) -> bool {
        let word = self.0.get_mut(node as usize / 64);
        word.map(|word| *word |= 1 << (node % 64)).is_some()
    }

    /// True when `node` is in the set.
    #[must_use]
    pub fn contains(&self, node: u32) -> bool {
        self.0.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 != 0)
    }

    /// Nodes in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The nodes, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).zip(&self.0);
        words.flat_map(|(index, &word): (u32, &u64)| {
            let mut left = word;
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// The words, as the kernel takes them.
    pub(crate) const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// The words, for the kernel to write.
    pub(crate) const fn words_mut(&mut self) -> &mut [u64; WORDS] {
        &mut self.0
    }
}

impl Extend<u32> for NodeMask {
    /// Adds the nodes of an iterator; numbers that no kernel has are left out.
    fn extend<Nodes: IntoIterator<Item = u32>>(&mut self, nodes: Nodes) {
        nodes.into_iter().for_each(|node| {
            self.insert(node);
        });
    }
}

impl FromIterator<u32> for NodeMask {
    /// The set of the nodes of an iterator; numbers that no kernel has are left out.
    fn from_iter<Nodes: IntoIterator<Item = u32>>(nodes: Nodes) -> Self {
        let mut mask = Self::EMPTY;
        mask.extend(nodes);
        mask
    }
}

/// As the kernel writes lists: `0-1,4`.
impl fmt::Display for NodeMask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut nodes = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = nodes.next() {
            let mut last = first;
            while nodes.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            if last == first {
                write!(out, "{comma}{first}")?;
            } else {
                write!(out, "{comma}{first}-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for NodeMask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "NodeMask({self})")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::NodeMask;
    use std::string::ToString;

    #[test]
    fn a_mask_is_written_as_the_kernel_writes_lists() {
        let text = |nodes: &[u32]| nodes.iter().copied().collect::<NodeMask>().to_string();
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[3]), "3");
        assert_eq!(text(&[0, 1]), "0-1");
        assert_eq!(text(&[1023, 64, 63, 2, 0]), "0,2,63-64,1023");
    }

    #[test]
    fn numbers_past_the_last_are_refused() {
        let mut mask = NodeMask::one(1024);
        assert!(mask.is_empty() && !mask.insert(u32::MAX) && !mask.contains(4096));
        assert!(mask.insert(1023) && mask.contains(1023));
        assert_eq!(mask.len(), 1);
    }
}
