//! The flip: which slab a CPU has, which one a drain waits for, and in which phase that is.
//!
//! | phase | `table[cpu]` | slabs | who leaves it, and how |
//! |---|---|---|---|
//! | Absent | miss | none | the CPU's own slow path: builds A, flips miss to A in a section: Live |
//! | Live | A | A in use, maybe B in `spare`, with nothing of worth | a drain from elsewhere: A to miss: Asked. Own drain: A to B in a section: Live |
//! | Asked | miss | A in `asked`: maybe still used by one section | the CPU's own slow path: flips miss to B in a section, which proves that every earlier section ended: Answered. A drain that fenced, or saw every task asleep or elsewhere: Live, with B |
//! | Answered | B | A in `asked`: nobody uses it | the next drain: empties A: Live |
//!
//! Every change of `table[cpu]` and of these words is made by the holder of the CPU's flip lock; the
//! CPU's own side only tries it, and does without a cache when it is taken.
//!
//! Writers, and what each is in terms of the phases (the last two are not built yet; they add no
//! phase but Off, and no new way to prove that a slab is free):
//!
//! | writer | runs on | from | to | proof that the old slab is free |
//! |---|---|---|---|---|
//! | first use (`settle`) | the CPU | Absent | Live | there is none |
//! | fenced drain (`ask`, fence, `collect`) | any | Live, Asked | Live | the fence |
//! | quiet drain (`ask`, later `collect`) | any | Live, Asked, Answered | Asked, Live | an answer, or every task seen away |
//! | request without memory (`ask`, later `collect`) | any | Live, Asked, Answered | Asked, Live | an answer, or there is no other thread |
//! | own drain (`exchange`) | the CPU | Live | Live | its own section |
//! | answer (`settle`) | the CPU | Asked | Answered | its own section |
//! | child of fork (`forget`) | any | all, if the lock was left behind | Absent | no other thread is left; what the slabs held is lost to the child |
//! | growing, re-dividing (`exchange`) | the CPU | Live | Live | as own drain: the new slab has other limits, and the old one's objects are pushed on it |
//! | another home by policy (`rehome`) | the CPU | Live | Live | as own drain: the new slab is another node's, and the old one's objects go home |
//! | giving a CPU's memory back | any | Live | Absent | as either drain, but the entry stays at miss |
//! | cache off | any | all | Off: entry at miss, `settle` refuses | as either drain |
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | F1 `table[cpu]` store by a drain | Relaxed | | a new slab is made before F4, and shown after it |
//! | F2 slab load in a section | (address dependency) | F4 | reads the new slab's words; loom knows no dependencies, so its models load with Acquire |
//! | F3 `table[cpu]` store in a section | plain | | only later sections of the same CPU read it; the lock (K2) and F5 bring what they did to a drain |
//! | F4 fence between F1 and reading a task's state | SeqCst | the kernel's context switch; F2 | a task that runs there later sees F1, and a new slab's words |
//! | F5 `phase` store | Release, under the flip lock | F6 | the node is known to who sees Live, maybe from another CPU by now |
//! | F6 `phase` load without the lock | Acquire | F5 | |

use crate::base::ids::NodeIndex;
use crate::base::sync::{AtomicU32, AtomicUsize, Ordering, barrier, order};

/// What a CPU's table entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Phase {
    /// No slab yet.
    Absent = 0,
    /// A slab in use.
    Live = 1,
    /// A drain took the slab and waits for the CPU's sections to end.
    Asked = 2,
    /// They have ended.
    Answered = 3,
}

/// The words of a CPU's record that say which slab is where, by address.  Zero bytes are Absent.
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(super) struct Flip {
    phase: AtomicU32,
    node: AtomicU32,
    live: AtomicUsize,
    spare: AtomicUsize,
    asked: AtomicUsize,
}

impl Flip {
    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(order!(F6, Acquire)) {
            1 => Phase::Live,
            2 => Phase::Asked,
            3 => Phase::Answered,
            _ => Phase::Absent,
        }
    }

    /// The node whose memory the CPU caches, known from the first time that it is Live.
    pub(super) fn node(&self) -> NodeIndex {
        NodeIndex::new(self.node.load(Ordering::Relaxed) as usize)
    }

    /// The slab in use; 0 is none.
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The slabs that may hold objects: the one in use, and one that a drain waits for; 0 is none.
    #[cfg(not(loom))]
    pub(super) fn full(&self) -> [usize; 2] {
        [&self.live, &self.asked].map(|slab| slab.load(Ordering::Relaxed))
    }

    fn become_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, order!(F5, Release));
    }

    /// An empty slab: `build` makes it of the spare one, or of nothing (0).
    fn fresh(&self, build: impl FnOnce(usize) -> Option<usize>) -> Option<usize> {
        build(self.spare.swap(0, Ordering::Relaxed))
    }

    /// After a fork that left the flip lock behind: the CPU starts anew.
    pub(super) fn forget(&self, entry: &AtomicUsize, miss: usize) {
        entry.store(miss, Ordering::Relaxed);
        for slab in [&self.live, &self.spare, &self.asked] {
            slab.store(0, Ordering::Relaxed);
        }
        self.become_phase(Phase::Absent);
    }

    /// On the CPU itself: gives an absent CPU its first slab, or answers a drain that asks.  `flip`
    /// makes its argument the slab, in a section of the CPU, if the entry is miss; none where it fails.
    pub(super) fn settle(
        &self,
        node: impl FnOnce() -> Option<NodeIndex>,
        build: impl FnOnce(usize) -> Option<usize>,
        flip: impl FnOnce(usize) -> bool,
    ) -> Option<()> {
        let next = match self.phase() {
            Phase::Live | Phase::Answered => return Some(()),
            Phase::Absent => {
                self.node.store(u32::try_from(node()?.get()).unwrap_or(0), Ordering::Relaxed);
                Phase::Live
            }
            Phase::Asked => Phase::Answered,
        };
        let slab = self.fresh(build)?;
        if flip(slab) {
            self.live.store(slab, Ordering::Relaxed);
            self.become_phase(next);
            return Some(());
        }
        // This thread runs elsewhere by now.
        self.keep(slab);
        None
    }

    /// On the CPU itself: changes its slab for an empty one.  `flip` makes its second argument the
    /// slab, in a section of the CPU, if the first one is it now.  The old one is the caller's.
    pub(super) fn exchange(
        &self,
        build: impl FnOnce(usize) -> Option<usize>,
        flip: impl FnOnce(usize, usize) -> bool,
    ) -> Option<usize> {
        let old = self.live();
        let slab = self.fresh(build)?;
        if flip(old, slab) {
            self.live.store(slab, Ordering::Relaxed);
            return Some(old);
        }
        self.keep(slab);
        None
    }

    /// As [`Flip::exchange`], for a slab of another node.
    #[cfg(not(loom))]
    pub(super) fn rehome(
        &self,
        node: NodeIndex,
        build: impl FnOnce(usize) -> Option<usize>,
        flip: impl FnOnce(usize, usize) -> bool,
    ) -> Option<usize> {
        let before = self.node.swap(node.byte().into(), Ordering::Relaxed);
        let old = self.exchange(build, flip);
        if old.is_none() {
            self.node.store(before, Ordering::Relaxed);
        }
        old
    }

    /// Flips a live CPU to the slab that misses: from here on its next slow path answers.
    /// The slab that comes after is made first: false when it cannot be had.
    pub(super) fn ask(
        &self,
        entry: &AtomicUsize,
        miss: usize,
        build: impl FnOnce(usize) -> Option<usize>,
    ) -> bool {
        let Some(slab) = self.fresh(build) else { return false };
        self.keep(slab);
        entry.store(miss, Ordering::Relaxed);
        barrier!(F4, SeqCst);
        self.asked.store(self.live.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        self.become_phase(Phase::Asked);
        true
    }

    /// The slab that was asked for, once nobody uses it; the CPU is live again.
    pub(super) fn collect(
        &self,
        entry: &AtomicUsize,
        build: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<usize> {
        if self.phase() == Phase::Asked {
            let slab = self.fresh(build)?;
            self.live.store(slab, Ordering::Relaxed);
            entry.store(slab, Ordering::Relaxed);
        }
        self.become_phase(Phase::Live);
        Some(self.asked.swap(0, Ordering::Relaxed))
    }

    /// Keeps an empty slab for the next flip.
    pub(super) fn keep(&self, slab: usize) {
        self.spare.store(slab, Ordering::Relaxed);
    }
}

/// The words are the real ones; critical sections are assembler, so they are modelled.  Sections of one
/// CPU never overlap, and its next one sees what the one before did: each is run under the CPU's mutex.
#[cfg(all(loom, test))]
mod loom_models {
    use super::{Flip, Phase};
    use crate::base::ids::NodeIndex;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught, is_weakened};
    use crate::base::sync::{AtomicU32, AtomicUsize, Ordering, fence, order};
    use crate::sys::lock::{Lock, Rank};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    const MISS: usize = 100;
    const NODE: usize = 3;

    /// One CPU.  Slabs are named 1 and 2; a slab's one word counts its objects.
    #[derive(Default)]
    struct Machine {
        steps: Steps,
        lock: Lock,
        flip: Flip,
        entry: AtomicUsize,
        slabs: [Plain; 2],
        built: Plain,
        cpu: Mutex<()>,
        /// 1 while the one task of the process runs.
        running: AtomicU32,
    }

    impl Machine {
        fn absent() -> Arc<Self> {
            Arc::new(Self { entry: AtomicUsize::new(MISS), ..Self::default() })
        }

        fn live() -> Arc<Self> {
            let machine = Self::absent();
            assert!(!machine.push());
            machine.seat();
            machine
        }

        fn slab(&self, name: usize) -> &Plain {
            &self.slabs[name - 1]
        }

        fn build(&self, spare: usize) -> Option<usize> {
            if spare != 0 {
                return Some(spare);
            }
            let name = self.built.get() + 1;
            self.built.set(name);
            self.slab(name).set(0);
            Some(name)
        }

        /// The hit path of free: a section that puts one object on the CPU's slab.
        fn push(&self) -> bool {
            self.steps.pass();
            let _section = self.cpu.lock();
            // F2: what comes by the address comes in order; loom knows no dependencies.
            let slab = self.entry.load(Ordering::Acquire);
            if slab != MISS {
                self.slab(slab).count();
            }
            slab != MISS
        }

        /// The section of a flip on the CPU itself.
        fn change(&self, old: usize, new: usize) -> bool {
            let _section = (!is_weakened("section")).then(|| self.cpu.lock());
            let is_old = self.entry.load(Ordering::Relaxed) == old;
            if is_old {
                // F3
                self.entry.store(new, Ordering::Relaxed);
            }
            is_old
        }

        /// What a miss does first; the CPU's node.
        fn seat(&self) -> Option<NodeIndex> {
            if matches!(self.flip.phase(), Phase::Absent | Phase::Asked) {
                let _held = self.lock.try_enter(Rank::Flip)?;
                self.flip.settle(
                    || Some(NodeIndex::new(NODE)),
                    |spare| self.build(spare),
                    |new| self.change(MISS, new),
                )?;
            }
            Some(self.flip.node())
        }

        /// Pushes, and answers whoever asks; how many objects went in.
        fn push_or_answer(&self) -> usize {
            if self.push() {
                return 1;
            }
            self.seat();
            usize::from(self.push())
        }

        /// A push between two context switches of the kernel, as far as it promises anything of them.
        fn push_as_task(&self) -> usize {
            self.running.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let pushed = usize::from(self.push());
            self.running.store(0, Ordering::Release);
            pushed
        }

        fn empty(&self, slab: usize) -> usize {
            let objects = self.slab(slab).set(0);
            self.flip.keep(slab);
            objects
        }

        /// A drain from elsewhere; how many objects it took.
        fn drain(&self, proof: fn(&Self) -> bool) -> usize {
            self.steps.pass();
            let _held = self.lock.enter(Rank::Flip);
            if self.flip.phase() == Phase::Live {
                self.flip.ask(&self.entry, MISS, |spare| self.build(spare));
            }
            let is_free =
                self.flip.phase() == Phase::Answered || proof(self) || is_weakened("proof");
            let slab = if is_free {
                self.flip.collect(&self.entry, |spare| self.build(spare))
            } else {
                None
            };
            slab.map_or(0, |slab| self.empty(slab))
        }

        /// A drain by a thread on the CPU.
        fn drain_own(&self) -> usize {
            self.steps.pass();
            let _held = self.lock.enter(Rank::Flip);
            let slab =
                self.flip.exchange(|spare| self.build(spare), |old, new| self.change(old, new));
            slab.map_or(0, |slab| self.empty(slab))
        }

        fn left(&self) -> usize {
            self.slabs.iter().map(Plain::get).sum()
        }
    }

    /// Nobody else's proof: only the CPU answers.
    fn no_proof(_: &Machine) -> bool {
        false
    }

    /// The section under way ends, and the next one sees all that was stored before.
    fn fence_cpu(machine: &Machine) -> bool {
        drop(machine.cpu.lock());
        true
    }

    /// Reads the task's state, which the kernel orders after the task's last section.
    fn task_is_away(machine: &Machine) -> bool {
        machine.running.load(Ordering::Acquire) == 0
    }

    /// One thread uses the CPU, another drains it: all objects are found, each once.
    fn balance(machine: &Arc<Machine>, user: fn(&Machine) -> usize, drain: fn(&Machine) -> usize) {
        let other = machine.clone();
        let user = thread::spawn(move || user(&other));
        let drained = drain(machine);
        let pushed = user.join().expect("the user ends");
        assert_eq!(pushed, drained + machine.left());
    }

    fn an_answer_hands_the_slab_over() {
        balance(
            &Machine::live(),
            |machine| machine.push_or_answer() + machine.push_or_answer(),
            |machine| machine.drain(no_proof) + machine.drain(no_proof),
        );
    }

    fn a_fence_hands_the_slab_over() {
        balance(
            &Machine::live(),
            |machine| machine.push_or_answer() + machine.push_or_answer(),
            |machine| machine.drain(fence_cpu),
        );
    }

    fn a_task_away_hands_the_slab_over() {
        balance(&Machine::live(), Machine::push_as_task, |machine| machine.drain(task_is_away));
    }

    /// It was away, the drain made a new slab and emptied the old one: it finds the new one's words.
    fn a_task_that_comes_back_finds_the_new_slab() {
        balance(
            &Machine::live(),
            |machine| machine.push_as_task() + machine.push_as_task(),
            |machine| machine.drain(task_is_away),
        );
    }

    fn an_own_drain_takes_the_slab() {
        balance(
            &Machine::live(),
            |machine| machine.push_or_answer() + machine.push_or_answer(),
            Machine::drain_own,
        );
    }

    /// A thread that read this CPU's number has moved on when another one gives the CPU its slab.
    fn a_seat_knows_its_node() {
        let machine = Machine::absent();
        let other = machine.clone();
        let settler = thread::spawn(move || {
            other.seat();
            other.steps.pass();
        });
        machine.steps.pass();
        if let Some(node) = machine.seat() {
            assert_eq!(node.get(), NODE);
        }
        settler.join().expect("the other thread ends");
    }

    #[test]
    fn a_drain_owns_what_it_empties_and_loses_nothing() {
        explore(an_answer_hands_the_slab_over);
        explore(a_fence_hands_the_slab_over);
        explore(a_task_away_hands_the_slab_over);
        explore(a_task_that_comes_back_finds_the_new_slab);
        explore(an_own_drain_takes_the_slab);
        explore(a_seat_knows_its_node);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("F4", a_task_away_hands_the_slab_over));
        assert!(is_caught("F4", a_task_that_comes_back_finds_the_new_slab));
        assert!(is_caught("F5", a_seat_knows_its_node));
        assert!(is_caught("F6", a_seat_knows_its_node));
    }

    #[test]
    fn a_drain_without_its_proof_is_caught() {
        assert!(is_caught("proof", an_answer_hands_the_slab_over));
        assert!(is_caught("proof", a_task_away_hands_the_slab_over));
        assert!(is_caught("section", an_own_drain_takes_the_slab));
    }
}
