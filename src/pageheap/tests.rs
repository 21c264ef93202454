//! Runs against a model of run maps: taken and given at random, heads and lists checked at each step.

extern crate std;

use std::collections::BTreeMap;
use std::thread;
use std::vec::Vec;

use super::{RunsBack, census, give_runs, rebuild_check, take_runs};
use crate::base::bits;
use crate::base::config::RUNS_PER_COMPOUND;
use crate::base::ids::{CompoundId, NodeIndex};
use crate::region::tests::{Random, alone};
use crate::region::{self, Slice, State};

fn place(run: usize) -> (CompoundId, u32) {
    let place = u32::try_from(run).expect("a slice has at most 2^25 runs");
    let runs = u32::try_from(RUNS_PER_COMPOUND).expect("64");
    (CompoundId(place / runs), place % runs)
}

/// Takes and gives runs at random; each thread has a model of its own.
struct Model {
    node: NodeIndex,
    random: Random,
    /// Run maps by compound: this model's part of them.
    maps: BTreeMap<CompoundId, u64>,
}

impl Model {
    fn new(node: NodeIndex, seed: u64) -> Self {
        Self { node, random: Random::new(seed), maps: BTreeMap::new() }
    }

    fn take(&mut self) {
        let count = [1, 1, 2, 5, 9, 32, 33, 64][self.random.index(8)];
        let Ok(run) = take_runs(self.node, count) else { return };
        let (compound, first) = place(run);
        let mask = bits::range(first, count);
        let map = self.maps.entry(compound).or_default();
        assert_eq!(*map & mask, 0, "runs handed out twice: {count} at {first} of {compound:?}");
        *map |= mask;
    }

    /// Gives some of the runs of one compound back, or all.
    fn give(&mut self) {
        if self.maps.is_empty() {
            return;
        }
        let at = self.random.index(self.maps.len());
        let (&compound, &map) = self.maps.iter().nth(at).expect("counted");
        let some = bits::range(self.random.below(64), 1) | bits::range(self.random.below(33), 32);
        let mask = if self.random.below(3) == 0 { map } else { map & some };
        if mask == 0 {
            return;
        }
        give_runs(self.node, RunsBack { compound, mask });
        if map == mask {
            self.maps.remove(&compound);
        } else {
            self.maps.insert(compound, map & !mask);
        }
    }

    fn step(&mut self, is_filling: bool) {
        if self.random.below(8) < if is_filling { 5 } else { 3 } {
            self.take();
        } else {
            self.give();
        }
    }

    fn agrees(&self, slice: &'static Slice) {
        for (&compound, &map) in &self.maps {
            let head = slice.head(compound);
            assert_eq!(head.state(), State::Runs);
            assert_eq!((head.run_map(), head.refcount()), (map, map.count_ones()));
        }
        let runs = self.maps.values().map(|map| map.count_ones()).sum();
        let cut = u32::try_from(self.maps.len()).expect("few");
        assert_eq!(census(slice), [cut, runs]);
        assert_eq!(rebuild_check(slice), Ok(()));
    }

    fn finish(&mut self) {
        for (compound, mask) in core::mem::take(&mut self.maps) {
            give_runs(self.node, RunsBack { compound, mask });
        }
    }
}

fn is_empty(slice: &'static Slice) {
    slice.purge();
    let [used, free, resident] = slice.census();
    assert_eq!(rebuild_check(slice), Ok(()));
    assert_eq!((census(slice), free, resident), ([0, 0], used, 0));
}

#[test]
fn the_refcount_is_the_number_of_runs_out() {
    let _alone = alone();
    let node = NodeIndex::new(0);
    let slice = region::slice(node);
    let mut model = Model::new(node, 11);
    for step in 0..6000 {
        model.step(step / 700 % 2 == 0);
        model.agrees(slice);
    }
    model.finish();
    is_empty(slice);
}

#[test]
fn runs_of_other_threads_are_never_handed_out() {
    let _alone = alone();
    let node = NodeIndex::new(1);
    let work = |seed| {
        let mut model = Model::new(node, seed);
        (0..4000).for_each(|step| model.step(step / 300 % 2 == 0));
        model
    };
    let models: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut all = BTreeMap::new();
    for (&compound, &map) in models.iter().flat_map(|model| &model.maps) {
        let sum = all.entry(compound).or_insert(0);
        assert_eq!(*sum & map, 0, "two threads hold the same runs of {compound:?}");
        *sum |= map;
    }
    Model { node, random: Random::new(1), maps: all }.agrees(region::slice(node));
    models.into_iter().for_each(|mut model| model.finish());
    is_empty(region::slice(node));
}

#[test]
fn the_fullest_compound_that_fits_serves() {
    let _alone = alone();
    let node = NodeIndex::new(2);
    let [fuller, emptier] = [60, 40].map(|count| place(take_runs(node, count).expect("memory")).0);
    assert_ne!(fuller, emptier);
    let small = place(take_runs(node, 3).expect("memory"));
    assert_eq!(small, (fuller, 60));
    let large = place(take_runs(node, 20).expect("memory"));
    assert_eq!(large, (emptier, 40));
    give_runs(node, RunsBack { compound: fuller, mask: bits::range(0, 63) });
    give_runs(node, RunsBack { compound: emptier, mask: bits::range(0, 60) });
    is_empty(region::slice(node));
}
