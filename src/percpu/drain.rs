//! Drains: a CPU's objects go to the layers below, asked for from any CPU.
//!
//! Three proofs that no section uses the old slab any more:
//!
//! 1. *Fence*: `membarrier` makes the CPU's section, if there is one, start again.  It interrupts the
//!    CPU when that runs this process.
//! 2. *Quiet*: no interrupt.  The CPU's own next slow path answers, or each task of the process has
//!    been seen asleep or on another CPU once: it has left its section, and its next one sees the new
//!    table entry.  A CPU where one task computes without ever missing stays unanswered; that is a
//!    state (Asked), which the next drain finds and goes on from: it never flips twice.
//! 3. *Alone*: libc says that the process has one thread, which is here.

use super::census::cpus;
use super::cpus::{Cpu, Phase, record};
use super::slab::Slab;
use crate::base::ids::CpuId;
use crate::base::sync::{Ordering, spin_loop};
use crate::slab::Homecoming;
use crate::sys::arch::STACKS;
use crate::sys::cpu::{Tasks, tasks_on};
use crate::sys::{process, rseq};

/// How a drain makes sure that nobody uses the CPU's objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// The caller's own CPU without any proof needed; others by fence where the kernel offers it,
    /// quietly where not.
    Auto,
    /// By `membarrier`: at once, interrupts a CPU that runs this process.  Pending only where the
    /// kernel refuses the fence or memory for an empty slab, or in a signal handler.
    Fence,
    /// Without an interrupt; may be pending.
    Quiet,
}

/// What became of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drained {
    /// This many objects went to the layers below.
    Objects(u64),
    /// A task may still be in a section on that CPU: ask again later.  Nothing is lost meanwhile.
    Pending,
}

/// Rounds that a quiet drain looks for an answer before it is pending.
const ROUNDS: u32 = 4;

/// Pauses in which a request that found no memory waits for CPUs that it has asked: some 20 us, in which a
/// thread that allocates comes to a slow path for sure, since each of its calls is one.
const REPLY_PAUSES: u32 = 500;

/// Drains one CPU.  A CPU without a slab, or beyond the table, has nothing to drain.
pub(crate) fn drain_cpu(cpu: CpuId, how: How) -> Drained {
    let prove = |cpu| match how {
        How::Fence => rseq::fence_cpu(cpu).is_ok(),
        How::Quiet => quiet_proof(cpu),
        How::Auto => (rseq::can_fence() && rseq::fence_cpu(cpu).is_ok()) || quiet_proof(cpu),
    };
    drain_proved(cpu, prove, |objects| objects.sort_unstable())
}

/// Drains every CPU that the table has; pending if any is.
pub(crate) fn drain_all(how: How) -> Drained {
    cpus().fold(Drained::Objects(0), |sum, cpu| match (sum, drain_cpu(cpu, how)) {
        (Drained::Objects(sum), Drained::Objects(more)) => Drained::Objects(sum + more),
        _ => Drained::Pending,
    })
}

/// Brings home what can be had for a request that found no memory, with memory operations alone: a sandbox
/// entered since the start may end a program that asks for a fence or reads files.  This CPU's objects come at
/// once, and all others' while there is no other thread.  Otherwise CPUs are asked; where a thread runs that comes
/// to a slow path soon, it answers, and what it had comes, too.  What CPUs have that are silent comes with a later
/// drain, or with the next request that finds no memory after they answered.
pub(crate) fn reclaim() {
    let is_alone = process::has_one_thread();
    let mut asked = 0;
    for (cpu, record) in cpus().filter_map(|cpu| Some((cpu, record(cpu)?))) {
        let was_live = record.phase() == Phase::Live;
        drain_proved(cpu, |_| is_alone, |_| ());
        asked += u32::from(was_live && record.phase() == Phase::Asked);
    }
    for _ in 0..REPLY_PAUSES {
        if asked == 0 {
            break;
        }
        spin_loop();
        asked = asked.saturating_sub(cpus().map(|cpu| u32::from(collect_answer(cpu))).sum());
    }
}

/// Sends home what a CPU had that has answered; true if it has.
fn collect_answer(cpu: CpuId) -> bool {
    let Some(record) = record(cpu).filter(|record| record.phase() == Phase::Answered) else {
        return false;
    };
    let _held = record.enter(cpu);
    let slab = if record.phase() == Phase::Answered { record.collect(cpu) } else { None };
    slab.map(|slab| empty(record, slab, &|_: &mut [usize]| ())).is_some()
}

fn quiet_proof(cpu: CpuId) -> bool {
    (0..ROUNDS).any(|_| tasks_on(cpu) == Tasks::Away)
}

fn drain_proved(cpu: CpuId, prove: impl Fn(CpuId) -> bool, tidy: impl Fn(&mut [usize])) -> Drained {
    let Some(record) = record(cpu).filter(|record| record.phase() != Phase::Absent) else {
        return Drained::Objects(0);
    };
    if process::is_vfork_child() {
        // Its own CPU number is stale, and /proc shows it no task but itself.
        return Drained::Pending;
    }
    let here = rseq::current_cpu() == Some(cpu);
    let _held = record.enter(cpu);
    let mut objects = 0;
    if record.phase() == Phase::Answered {
        // An earlier drain's slab; what the CPU has cached since is in another one.
        objects += record.collect(cpu).map_or(0, |slab| empty(record, slab, &tidy));
    }
    let slab = match record.phase() {
        Phase::Absent => return Drained::Objects(objects),
        Phase::Live if here && let Some(slab) = record.flip_own(cpu) => Some(slab),
        phase => {
            if phase == Phase::Live && !record.ask(cpu) {
                return Drained::Pending;
            }
            // Broken on purpose, for the test that shows that the stress test sees it.
            let proved = cfg!(mutant = "fence") || prove(cpu);
            // The CPU may answer only while the lock is free; a proof of our own needs no answer.
            if proved { record.collect(cpu) } else { None }
        }
    };
    let Some(slab) = slab else { return Drained::Pending };
    Drained::Objects(objects + empty(record, slab, &tidy))
}

/// Sends the objects of a slab that no section uses to the layers below, and keeps it for the next flip; how many
/// there were.
#[expect(unsafe_code, reason = "the slab is ours alone")]
pub(super) fn empty(record: &Cpu, slab: Slab, tidy: &impl Fn(&mut [usize])) -> u64 {
    let mut back = Homecoming::default();
    let mut objects = 0;
    for stack in 0..STACKS {
        // SAFETY: the caller has the proof that no section uses the slab, and keeps the flip lock.
        let words = unsafe { slab.take_stack(stack) };
        objects += words.len() as u64;
        // By address: runs of one compound come home together.
        tidy(words);
        record.send_home(stack, words, &mut back);
    }
    record.keep(slab);
    record.drained.fetch_add(objects, Ordering::Relaxed);
    objects
}
