//! The slabs' layout, and objects that go through them amid drains of every kind.

extern crate std;

use std::collections::BTreeSet;
use std::sync::{MutexGuard, Once};
use std::thread;
use std::vec::Vec;

use super::census::census;
use super::cpus::{Phase, count, record, seat, start};
use super::division::Division;
use super::slab::Slab;
use super::{Drained, How, allocate, drain_all, drain_cpu, free};
use crate::base::classes::Class;
use crate::base::config::{SLAB_FREE_BYTES, SLAB_SHARED_BYTES};
use crate::base::ids::{CpuId, NodeIndex};
use crate::base::sync::{AtomicUsize, Ordering};
use crate::region::tests::{NODES, Random};
use crate::slab::{self, Homecoming};
use crate::sys::arch::{REMOTE_STACK, STACKS};
use crate::sys::rseq;
use crate::{pageheap, region, transfer};

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

/// Objects that are in nobody's cache; what waits between CPUs goes home first.
fn objects_out() -> u64 {
    for node in (0..NODES as usize).map(NodeIndex::new) {
        transfer::flush(node, &mut Homecoming::default());
    }
    nodes().map(|slice| slab::check(slice).expect("sound")).sum()
}

fn is_empty() {
    assert_ne!(drain_all(How::Fence), Drained::Pending);
    assert_eq!(objects_out(), 0);
    for node in (0..NODES as usize).map(NodeIndex::new) {
        slab::trim(node, &mut Homecoming::default());
    }
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

/// A division, and a slab that is divided so.
struct Divided {
    division: Division,
    slab: Slab,
}

impl Divided {
    fn packed() -> Self {
        let slab = Slab::room(nodes().next().expect("a node")).expect("memory");
        let division = Division::default();
        division.begin(Slab::words());
        let divided = Self { division, slab };
        divided.apply();
        divided
    }

    fn apply(&self) {
        let slice = nodes().next().expect("a node");
        self.slab.divide(slice, &self.division, (NodeIndex::new(0), CpuId(0)), 1);
    }

    fn room(&self, stack: usize) -> usize {
        let [begin, _, limit] = self.slab.bounds(stack);
        (limit - begin) / 8
    }

    /// A class missed so often that it has what it may have.
    fn missed(&self, class: Class, times: usize) {
        for _ in 0..times {
            if self.division.note_overflow(class) {
                self.division.grow(class, Slab::words());
            }
            if self.division.note_refill(class) {
                self.division.grow(class, Slab::words());
            }
        }
        self.apply();
    }

    /// Stacks are apart, each behind a null word, and none reaches past the slab.
    fn is_sound(&self) {
        let mut at = self.slab.0;
        for stack in 0..STACKS {
            let [begin, top, limit] = self.slab.bounds(stack);
            assert_eq!(top, begin, "stack {stack} starts empty");
            assert_eq!(self.slab.len(stack), 0);
            assert!(begin >= at + 8 && limit >= begin, "stack {stack} leaves room for a null word");
            // SAFETY: the word before a stack is inside the slab, which is metadata that stays.
            #[expect(unsafe_code, reason = "a word of the slab")]
            let null = unsafe { crate::sys::mem::record::<AtomicUsize>(begin - 8) };
            assert_eq!(null.load(Ordering::Relaxed), 0);
            at = limit;
        }
        assert!(at <= self.slab.0 + 4096 + Slab::words() * 8);
        assert_eq!(self.room(0), 0, "class 0 is the slow path");
    }
}

fn class_of(size: usize) -> Class {
    Class::of_size(size).expect("a small size")
}

#[test]
fn a_packed_slab_takes_two_pages_and_knows_every_small_class() {
    let _alone = alone();
    let divided = Divided::packed();
    divided.is_sound();
    for class in Class::all() {
        let room = divided.room(class.index());
        assert_eq!(room > 0, class.shape().size <= 32 << 10, "{class:?}: {room}");
    }
    let [_, _, end_of_classes] = divided.slab.bounds(REMOTE_STACK - 1);
    assert!(end_of_classes <= divided.slab.0 + 8192);
    assert!((0..NODES as usize).all(|node| divided.room(REMOTE_STACK + node) > 0));
    assert!(
        (NODES as usize..STACKS - REMOTE_STACK).all(|node| divided.room(REMOTE_STACK + node) == 0)
    );
}

#[test]
fn a_class_that_is_wanted_again_grows_and_the_slab_stays_sound() {
    let _alone = alone();
    let divided = Divided::packed();
    for (size, times, expected) in
        [(64, 20, 1000), (1024, 20, 1000), (48_000, 6, 20), (1 << 20, 3, 1)]
    {
        divided.missed(class_of(size), times);
        divided.is_sound();
        let room = divided.room(class_of(size).index());
        assert!(room >= expected, "{size}: {room}");
    }
}

#[test]
fn a_class_that_only_overflows_or_only_runs_out_stays_small() {
    let _alone = alone();
    let divided = Divided::packed();
    let (consumed, produced, large) = (class_of(64), class_of(80), class_of(100_000));
    for _ in 0..1000 {
        for class in [consumed, large] {
            if divided.division.note_overflow(class) {
                divided.division.grow(class, Slab::words());
            }
        }
        if divided.division.note_refill(produced) {
            divided.division.grow(produced, Slab::words());
        }
    }
    let capacities =
        [consumed, produced, large].map(|class| divided.division.capacity(class.index()));
    assert_eq!(capacities, [64, 64, 0]);
}

#[test]
fn quiet_classes_make_room_for_busy_ones() {
    let _alone = alone();
    let divided = Divided::packed();
    let classes: Vec<_> = Class::all().filter(|class| class.shape().size <= 1024).collect();
    for &class in &classes {
        divided.missed(class, 40);
    }
    divided.is_sound();
    let late = *classes.last().expect("some");
    divided.missed(late, 4000);
    divided.is_sound();
    assert!(divided.room(late.index()) >= 1000, "{}", divided.room(late.index()));
}

#[test]
fn what_slabs_may_hold_is_bounded() {
    let _alone = alone();
    let slabs: Vec<_> = (0..8).map(|_| Divided::packed()).collect();
    for divided in &slabs {
        for class in Class::all() {
            divided.missed(class, 200);
        }
        divided.is_sound();
    }
    let bytes: usize = slabs.iter().map(|divided| divided.division.bytes()).sum();
    assert!(bytes <= SLAB_SHARED_BYTES + slabs.len() * SLAB_FREE_BYTES);
}

#[test]
fn a_division_that_was_left_behind_starts_packed() {
    let _alone = alone();
    let [divided, packed] = [(); 2].map(|()| Divided::packed());
    for class in Class::all() {
        divided.missed(class, 200);
    }
    divided.division.forget();
    assert_eq!(divided.division.bytes(), 0);
    divided.division.begin(Slab::words());
    assert_eq!(divided.division.bytes(), packed.division.bytes());
    assert!(
        (0..STACKS)
            .all(|stack| divided.division.capacity(stack) == packed.division.capacity(stack))
    );
    for class in Class::all() {
        divided.missed(class, 200);
    }
    divided.is_sound();
}

#[test]
fn a_batch_that_comes_and_goes_ends_up_in_the_slab() {
    let _alone = alone();
    let mut random = Random::new(41);
    for class in [16, 3000, 16 << 10].map(class_of) {
        let mut refills = 0;
        for _ in 0..30 {
            let before = slab_refills(class);
            let mut held: Vec<_> = (0..500).filter_map(|_| allocate(class).ok()).collect();
            assert_eq!(held.iter().collect::<BTreeSet<_>>().len(), held.len());
            while !held.is_empty() {
                give_back(held.swap_remove(random.index(held.len())));
            }
            refills = slab_refills(class) - before;
        }
        // Without rseq there are no slabs, and each object comes from its span.
        let few = refills <= 200 || seat().is_none();
        assert!(few, "{refills} batches of {class:?} still come from spans");
        is_empty();
    }
}

fn slab_refills(class: Class) -> u64 {
    nodes().map(|slice| slab::census(slice, class).refills).sum()
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
        assert!(census().all(|cpu| cpu.cached + cpu.away == 0), "objects are cached after a drain");
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
