//! Pools against a set of the objects that are out.

extern crate std;

use std::collections::BTreeSet;
use std::thread;
use std::vec::Vec;

use super::{Homecoming, check, give, object_bytes, take, trim};
use crate::base::classes::Class;
use crate::base::config::BATCH_MAX;
use crate::base::ids::NodeIndex;
use crate::base::sync::Ordering;
use crate::pageheap;
use crate::region;
use crate::region::tests::{Random, alone};

/// Classes of every kind of span: with many words of bits, with one object, with runs to spare.
fn classes() -> [Class; 9] {
    [1, 16, 128, 1000, 4096, 20_000, 40_000, 300_000, 1 << 20]
        .map(|size| Class::of_size(size).expect("up to 1 MiB"))
}

fn take_some(node: NodeIndex, class: Class, random: &mut Random) -> Vec<usize> {
    let mut batch = [0; BATCH_MAX];
    let wanted = 1 + random.index(BATCH_MAX);
    let got = take(node, class, &mut batch[..wanted]).unwrap_or(0);
    batch[..got].to_vec()
}

/// Takes a random part of `held` out, at most a batch.
fn pick(held: &mut Vec<usize>, random: &mut Random) -> Vec<usize> {
    let count = (1 + random.index(BATCH_MAX)).min(held.len());
    (0..count).map(|_| held.swap_remove(random.index(held.len()))).collect()
}

fn is_an_object(object: usize, node: NodeIndex, class: Class) {
    let place = region::locate(object).expect("an object is ours");
    let byte = place.slice.class_byte(place.run()).load(Ordering::Relaxed);
    assert_eq!((place.node, byte), (node, class.byte()));
    assert_eq!(object_bytes(&place, class), class.shape().size as usize);
}

fn is_empty(node: NodeIndex) {
    trim(node, &mut Homecoming::default());
    assert_eq!(check(region::slice(node)), Ok(0));
    assert_eq!(pageheap::rebuild_check(region::slice(node)), Ok(()));
    assert_eq!(pageheap::census(region::slice(node)), [0, 0]);
    region::slice(node).purge();
}

#[test]
fn objects_are_out_once_and_all_come_home() {
    let _alone = alone();
    let node = NodeIndex::new(0);
    let mut random = Random::new(21);
    for class in classes() {
        let size = class.shape().size as usize;
        let mut held = Vec::new();
        let mut starts = BTreeSet::new();
        for step in 0..400 {
            if random.below(8) < if step / 50 % 2 == 0 { 6 } else { 2 } {
                for object in take_some(node, class, &mut random) {
                    is_an_object(object, node, class);
                    let before = starts.range(..object + size).next_back();
                    assert!(
                        before.is_none_or(|before| before + size <= object),
                        "{object:#x} overlaps {before:x?}"
                    );
                    starts.insert(object);
                    held.push(object);
                }
            } else {
                let batch = pick(&mut held, &mut random);
                assert!(batch.iter().all(|object| starts.remove(object)));
                give(node, class, &batch, &mut Homecoming::default());
            }
            assert_eq!(check(region::slice(node)), Ok(held.len() as u64), "{class:?}");
        }
        give(node, class, &held, &mut Homecoming::default());
        is_empty(node);
    }
}

#[test]
fn a_span_that_empties_leaves_unless_it_is_the_last() {
    let _alone = alone();
    let node = NodeIndex::new(1);
    let class = Class::of_size(4096).expect("small");
    let objects = class.shape().objects as usize;
    let mut held = Vec::new();
    while held.len() < 3 * objects {
        let mut batch = [0; 1];
        take(node, class, &mut batch).expect("memory");
        held.push(batch[0]);
    }
    let runs = |node| pageheap::census(region::slice(node))[1];
    assert_eq!(runs(node), 3 * class.shape().runs);
    give(node, class, &held, &mut Homecoming::default());
    assert_eq!(runs(node), class.shape().runs);
    is_empty(node);
}

#[test]
fn threads_of_one_pool_never_share_an_object() {
    let _alone = alone();
    let node = NodeIndex::new(2);
    let classes = classes();
    let work = |seed| {
        let mut random = Random::new(seed);
        let mut held = classes.map(|_| Vec::new());
        for step in 0..1200 {
            let kind = random.index(classes.len());
            if random.below(8) < if step / 100 % 2 == 0 { 5 } else { 3 } {
                held[kind].extend(take_some(node, classes[kind], &mut random));
            } else {
                let batch = pick(&mut held[kind], &mut random);
                give(node, classes[kind], &batch, &mut Homecoming::default());
            }
        }
        held
    };
    let held: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let all: Vec<usize> = held.iter().flatten().flatten().copied().collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    assert_eq!(check(region::slice(node)), Ok(all.len() as u64));
    for (kind, objects) in held.iter().flat_map(|held| held.iter().enumerate()) {
        give(node, classes[kind], objects, &mut Homecoming::default());
    }
    is_empty(node);
}
