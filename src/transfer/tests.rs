//! A mix of objects goes home, each to its own pool.

extern crate std;

use std::vec::Vec;

use super::{give_mixed, take};
use crate::base::classes::Class;
use crate::base::config::BATCH_MAX;
use crate::base::ids::NodeIndex;
use crate::region::tests::{NODES, Random, alone};
use crate::slab::{self, Homecoming};
use crate::{pageheap, region};

fn nodes() -> impl Iterator<Item = NodeIndex> {
    (0..NODES as usize).map(NodeIndex::new)
}

/// A few objects of each class and node, in random order.
fn mix(random: &mut Random) -> Vec<usize> {
    let mut objects = Vec::new();
    for node in nodes() {
        for class in Class::all().filter(|class| class.index() % 3 == 0) {
            let mut batch = [0; BATCH_MAX];
            let wanted = 1 + random.index(5);
            let got = take(node, class, &mut batch[..wanted]).expect("memory");
            objects.extend_from_slice(&batch[..got]);
        }
    }
    for at in (1..objects.len()).rev() {
        objects.swap(at, random.index(at + 1));
    }
    objects
}

#[test]
fn any_mix_goes_home() {
    let _alone = alone();
    let mut random = Random::new(31);
    for _ in 0..40 {
        let mut objects = mix(&mut random);
        let mut rest = objects.as_mut_slice();
        while !rest.is_empty() {
            let count = (1 + random.index(3 * BATCH_MAX)).min(rest.len());
            let (some, others) = rest.split_at_mut(count);
            give_mixed(some, &mut Homecoming::default());
            rest = others;
            let out: u64 =
                nodes().map(|node| slab::check(region::slice(node)).expect("sound")).sum();
            assert_eq!(out, rest.len() as u64);
        }
    }
    for node in nodes() {
        slab::trim(node, &mut Homecoming::default());
        assert_eq!(pageheap::census(region::slice(node)), [0, 0]);
        region::slice(node).purge();
    }
}
