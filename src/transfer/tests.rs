//! A mix of objects goes home, each to its own pool.

extern crate std;

use std::vec::Vec;

use super::{flush, give, sort, take};
use crate::base::classes::Class;
use crate::base::config::BATCH_MAX;
use crate::base::ids::{LaneId, NodeIndex};
use crate::region::tests::{NODES, Random, alone};
use crate::slab::{self, Homecoming};
use crate::{pageheap, region};

const LANE: LaneId = LaneId::new(0);

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
            let got = take(node, LANE, class, &mut batch[..wanted]).expect("memory");
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
            let count = (1 + random.index(BATCH_MAX)).min(rest.len());
            let (some, others) = rest.split_at_mut(count);
            let mut back = Homecoming::default();
            sort(some, |home, class, batch| slab::give(home, class, batch, &mut back));
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

fn racked() -> u64 {
    let of_class = |class| nodes().map(move |node| super::census(region::slice(node), class));
    Class::all().flat_map(of_class).sum()
}

fn class_of(size: usize) -> Class {
    Class::of_size(size).expect("a small size")
}

fn empty_everything() {
    for node in nodes() {
        flush(node, &mut Homecoming::default());
        slab::trim(node, &mut Homecoming::default());
        assert_eq!(pageheap::census(region::slice(node)), [0, 0]);
        region::slice(node).purge();
    }
}

#[test]
fn a_batch_put_down_in_one_lane_is_taken_up_in_any() {
    let _alone = alone();
    let home = NodeIndex::new(1);
    for (size, lane) in [(64, 0), (64, 5), (3000, 15), (1 << 20, 2)] {
        let class = class_of(size);
        let mut batch = [0; BATCH_MAX];
        let wanted = class.shape().batch as usize;
        let got = take(home, LANE, class, &mut batch[..wanted]).expect("memory");
        give(home, LaneId::new(lane), class, &batch[..got], &mut Homecoming::default());
        assert_eq!(racked(), got as u64);
        let mut again = [0; BATCH_MAX];
        assert_eq!(take(home, LANE, class, &mut again[..wanted]), Ok(got));
        assert_eq!(again, batch, "the spans were not asked");
        slab::give(home, class, &again[..got], &mut Homecoming::default());
    }
    empty_everything();
}

#[test]
fn a_full_rack_sends_batches_to_the_spans_and_an_empty_one_asks_them() {
    let _alone = alone();
    let home = NodeIndex::new(2);
    for class in [8, 64, 1000, 20_000, 300_000, 1 << 20].map(class_of) {
        let wanted = class.shape().batch as usize;
        let trays = super::trays(class);
        let batches: Vec<_> = (0..trays + 2)
            .map(|_| {
                let mut batch = [0; BATCH_MAX];
                let got = slab::take(home, class, &mut batch[..wanted]).expect("memory");
                batch[..got].to_vec()
            })
            .collect();
        for batch in &batches {
            give(home, LANE, class, batch, &mut Homecoming::default());
        }
        let kept: usize = batches.iter().take(trays).map(Vec::len).sum();
        assert_eq!(racked(), kept as u64, "{trays} trays");
        empty_everything();
        assert_eq!(racked(), 0);
    }
}

#[test]
fn batches_that_change_hands_among_threads_are_neither_lost_nor_doubled() {
    let _alone = alone();
    let work = |seed| {
        let mut random = Random::new(seed);
        let mut held = Vec::new();
        for _ in 0..3000 {
            let class = class_of([64, 700, 9000][random.index(3)]);
            let lane = LaneId::new(random.index(3));
            let home = NodeIndex::new(random.index(2));
            let mut batch = [0; BATCH_MAX];
            if held.len() < 40 && random.below(2) == 0 {
                let wanted = class.shape().batch as usize;
                let got = take(home, lane, class, &mut batch[..wanted]).expect("memory");
                held.push((home, class, batch[..got].to_vec()));
            } else if !held.is_empty() {
                let (home, class, objects) = held.swap_remove(random.index(held.len()));
                give(home, lane, class, &objects, &mut Homecoming::default());
            }
        }
        held
    };
    let held: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut objects: Vec<_> = held.iter().flat_map(|(.., objects)| objects.clone()).collect();
    let count = objects.len();
    objects.sort_unstable();
    objects.dedup();
    assert_eq!(objects.len(), count, "handed out twice");
    let out: u64 = nodes().map(|node| slab::check(region::slice(node)).expect("sound")).sum();
    assert_eq!(out, count as u64 + racked(), "an object is lost");
    for (home, class, objects) in held {
        give(home, LANE, class, &objects, &mut Homecoming::default());
    }
    empty_everything();
}
