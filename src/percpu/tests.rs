//! The slabs' layout, and objects that go through them amid drains of every kind.

extern crate std;

use std::collections::BTreeSet;
use std::sync::{MutexGuard, Once};
use std::thread;
use std::vec::Vec;

use super::cpus::{Phase, census, count, record, seat, start};
use super::slab::Slab;
use super::{Drained, How, allocate, drain_all, drain_cpu, free};
use crate::base::classes::Class;
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicUsize, Ordering};
use crate::region::tests::{NODES, Random};
use crate::slab::{self, Homecoming};
use crate::sys::arch::{REMOTE_STACK, STACKS};
use crate::sys::rseq;
use crate::{pageheap, region};

/// As in the layers below, with the table of slabs; only the slow path runs.
fn alone() -> MutexGuard<'static, ()> {
    static STARTED: Once = Once::new();
    let guard = region::tests::alone();
    STARTED.call_once(|| {
        assert!(start(256), "the system grants a table of 256 CPUs");
        rseq::start(false);
    });
    guard
}

fn nodes() -> impl Iterator<Item = &'static region::Slice> {
    (0..NODES as usize).map(|node| region::slice(NodeIndex::new(node)))
}

fn objects_out() -> u64 {
    nodes().map(|slice| slab::check(slice).expect("sound")).sum()
}

fn is_empty() {
    assert_ne!(drain_all(How::Fence), Drained::Pending);
    for node in (0..NODES as usize).map(NodeIndex::new) {
        slab::trim(node, &mut Homecoming::default());
    }
    assert_eq!(objects_out(), 0);
    for slice in nodes() {
        assert_eq!(pageheap::census(slice), [0, 0]);
        slice.purge();
    }
}

fn random_class(random: &mut Random) -> Class {
    let size = [8, 16, 64, 500, 3000, 30_000, 60_000, 500_000][random.index(8)];
    Class::of_size(size).expect("up to 1 MiB")
}

fn give_back(object: usize) {
    let place = region::locate(object).expect("an object is ours");
    let byte = place.slice.class_byte(place.run()).load(Ordering::Relaxed);
    free(object, place.node, Class::from_byte(byte).expect("an object has a class"));
}

/// A few random calls on what a thread holds.
fn churn(held: &mut Vec<usize>, random: &mut Random, steps: usize) {
    for _ in 0..steps {
        if held.is_empty() || random.below(5) < 3 {
            let class = random_class(random);
            if held.len() < 400
                && let Ok(object) = allocate(class)
            {
                held.push(object);
                continue;
            }
        }
        if !held.is_empty() {
            give_back(held.swap_remove(random.index(held.len())));
        }
    }
}

fn drain_somehow(random: &mut Random) {
    let how = [How::Auto, How::Fence, How::Quiet][random.index(3)];
    let _ = drain_cpu(CpuId(random.below(4)), how);
}

/// Flips a CPU to the slab that misses, as a quiet drain does that gets no answer.
fn ask_for(cpu: CpuId) {
    if let Some(record) = record(cpu) {
        let _held = record.enter(cpu);
        if record.phase() == Phase::Live {
            record.ask(cpu);
        }
    }
}

#[test]
fn stacks_stand_one_behind_the_other_with_a_null_word_between() {
    let _alone = alone();
    let node = NodeIndex::new(0);
    let slice = nodes().next().expect("a node");
    let slab = Slab::build(slice, node, CpuId(0), 1).expect("memory");
    let mut at = slab.0;
    for stack in 0..STACKS {
        let [begin, top, limit] = slab.bounds(stack);
        assert_eq!(top, begin, "stack {stack} starts empty");
        assert_eq!(slab.len(stack), 0);
        assert!(begin >= at + 8 && limit >= begin, "stack {stack} leaves room for a null word");
        // SAFETY: the word before a stack is inside the slab, which is metadata that stays.
        #[expect(unsafe_code, reason = "a word of the slab")]
        let null = unsafe { crate::sys::mem::record::<AtomicUsize>(begin - 8) };
        assert_eq!(null.load(Ordering::Relaxed), 0);
        at = limit;
    }
    assert!(at <= slab.0 + Slab::bytes());
}

#[test]
fn every_class_has_room_for_two_objects_and_other_nodes_for_some() {
    let _alone = alone();
    let slice = nodes().next().expect("a node");
    let slab = Slab::build(slice, NodeIndex::new(0), CpuId(0), 1).expect("memory");
    let room = |stack| {
        let [begin, _, limit] = slab.bounds(stack);
        (limit - begin) / 8
    };
    for class in Class::all() {
        assert_eq!(room(class.index()), class.shape().capacity as usize);
        assert!(room(class.index()) >= 2);
    }
    assert_eq!(room(0), 0, "class 0 is the slow path");
    assert!((0..NODES as usize).all(|node| room(REMOTE_STACK + node) > 0));
    assert!((NODES as usize..STACKS - REMOTE_STACK).all(|node| room(REMOTE_STACK + node) == 0));
}

#[test]
fn no_stack_holds_more_than_its_capacity() {
    let _alone = alone();
    let mut random = Random::new(41);
    for class in [16, 3000, 60_000].map(|size| Class::of_size(size).expect("small")) {
        let mut held: Vec<_> = (0..1500).filter_map(|_| allocate(class).ok()).collect();
        assert_eq!(held.iter().collect::<BTreeSet<_>>().len(), held.len());
        while !held.is_empty() {
            give_back(held.swap_remove(random.index(held.len())));
            let cpus = census()[0];
            assert!(census()[1] <= cpus * u64::from(class.shape().capacity + NODES * 64));
        }
        is_empty();
    }
}

#[test]
fn one_drain_leaves_nothing_whatever_an_earlier_one_left() {
    let _alone = alone();
    let mut random = Random::new(42);
    let mut held = Vec::new();
    for _ in 0..400 {
        churn(&mut held, &mut random, 30);
        if let Some(seat) = seat() {
            ask_for(seat.cpu);
        }
        if random.below(2) == 0 {
            churn(&mut held, &mut random, 10);
        }
        assert_ne!(drain_all(How::Fence), Drained::Pending);
        assert_eq!(census()[1], 0, "objects are cached after a drain");
        assert_eq!(objects_out(), held.len() as u64);
    }
    held.into_iter().for_each(give_back);
    is_empty();
}

#[test]
fn threads_amid_drains_lose_nothing_and_share_nothing() {
    let _alone = alone();
    let work = |seed| {
        let mut random = Random::new(seed);
        let mut held = Vec::new();
        for _ in 0..500 {
            churn(&mut held, &mut random, 20);
            drain_somehow(&mut random);
        }
        held
    };
    let held: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(held.iter().collect::<BTreeSet<_>>().len(), held.len());
    assert_ne!(drain_all(How::Fence), Drained::Pending);
    assert_eq!(objects_out(), held.len() as u64);
    held.into_iter().for_each(give_back);
    is_empty();
}

#[test]
fn a_cpu_beyond_the_table_has_nothing_to_drain() {
    let _alone = alone();
    for cpu in [count(), count() + 1, u32::MAX as usize] {
        let cpu = CpuId(u32::try_from(cpu).expect("a CPU number"));
        assert_eq!(drain_cpu(cpu, How::Fence), Drained::Objects(0));
    }
}
