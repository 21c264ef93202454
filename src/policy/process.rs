//! The policy of the process: what a call that says nothing of nodes gets.
//!
//! Policies that were ever set are kept, each once, and never change; a word says which one is current.  So a
//! reader sees one policy whole, without a lock, in a handler and in a child of fork, too.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | P1 `CURRENT` store | Release, under the lock | P2 | the entry is written |
//! | P2 `CURRENT` load | Acquire | P1 | |
#![allow(unsafe_code, reason = "entries are written once, before the word that names them")]

use core::cell::UnsafeCell;
use core::fmt;

use super::{Plan, Policy};
use crate::base::sync::{AtomicU32, Ordering};
use crate::sys::lock::{Lock, Rank};
use crate::topo;

/// Different policies that a process may set, each as often as it likes.
const ENTRIES: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    policy: Policy,
    plan: Plan,
}

#[derive(Debug)]
struct Entries([UnsafeCell<Entry>; ENTRIES]);

// SAFETY: an entry is written by the holder of `LOCK`, before `CURRENT` or `COUNT` names it, and never again.
unsafe impl Sync for Entries {}

static ENTRIES_SET: Entries = Entries(
    [const { UnsafeCell::new(Entry { policy: Policy::LOCAL, plan: Plan::LOCAL }) }; ENTRIES],
);
static COUNT: AtomicU32 = AtomicU32::new(0);
static CURRENT: AtomicU32 = AtomicU32::new(0);
/// 1 once CPUs may cache memory of other nodes than their own.
static MIXED: AtomicU32 = AtomicU32::new(0);
/// 1 while the current plan is strict, for those who ask nothing else.
static STRICT: AtomicU32 = AtomicU32::new(0);
static LOCK: Lock = Lock::new();

/// Why a policy cannot be the process's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetError {
    /// The machine has none of its nodes, or the process may not use their memory.
    NoSuchNode,
    /// The process has set 32 different policies before.
    TooMany,
    /// First touch is for the start alone: slices have been given to their nodes then, or never are.
    StartOnly,
    /// The caller is a signal handler that interrupted the allocator, or there is no memory to start it.
    NotNow,
}

impl fmt::Display for SetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoSuchNode => {
                "none of the nodes is here, or the process may not use their memory"
            }
            Self::TooMany => "the process has set 32 different policies already; set one of them",
            Self::StartOnly => {
                "firsttouch is taken, and stays, from the start alone: HOMENODE_POLICY=firsttouch"
            }
            Self::NotNow => "not from a signal handler that interrupted the allocator",
        })
    }
}

impl core::error::Error for SetError {}

fn entry(index: u32) -> &'static Entry {
    // SAFETY: see `Entries`: the index came from a word that names written entries.
    unsafe { &*ENTRIES_SET.0[index as usize % ENTRIES].get() }
}

/// Notes the policy that the settings ask for, for [`start`]: in its entry, since there is little stack.
pub(crate) fn ask(policy: &Policy) {
    // SAFETY: see `Entries`: nobody reads entries before the start has ended.
    unsafe { (*ENTRIES_SET.0[0].get()).policy = *policy };
}

/// Makes the policy that was asked for the process's; or the local one, where the machine has none of its
/// nodes: then `refuse` says so.  Nobody else is past the start yet.
pub(crate) fn start(refuse: impl FnOnce(&Policy, SetError)) {
    // SAFETY: see `ask`.
    let first = unsafe { &mut *ENTRIES_SET.0[0].get() };
    COUNT.store(1, Ordering::Relaxed);
    if first.plan.become_plan(&first.policy) {
        MIXED.store(first.plan.is_spread().into(), Ordering::Relaxed);
        STRICT.store(first.plan.is_strict().into(), Ordering::Relaxed);
        return;
    }
    refuse(&first.policy, SetError::NoSuchNode);
    first.policy = Policy::LOCAL;
    first.plan.become_plan(&Policy::LOCAL);
}

/// Makes a policy the process's, for memory that is taken from now on.
pub(crate) fn set(policy: &Policy) -> Result<(), SetError> {
    let plan = Plan::of(policy).ok_or(SetError::NoSuchNode)?;
    if plan.leaves_placement() != current().1.leaves_placement() {
        return Err(SetError::StartOnly);
    }
    if become_current(Entry { policy: *policy, plan }) { Ok(()) } else { Err(SetError::TooMany) }
}

/// Puts the process's policy anew to the nodes that it may use: a cpuset may have changed.
pub(crate) fn refresh() {
    topo::refresh();
    let (policy, plan) = current();
    if let Some(now) = Plan::of(policy).filter(|now| now != plan) {
        // Where there is no entry left, the one before goes on.
        become_current(Entry { policy: *policy, plan: now });
    }
}

/// False: there is no entry left.
fn become_current(new: Entry) -> bool {
    let _held = LOCK.enter(Rank::Policy);
    let count = COUNT.load(Ordering::Relaxed);
    let known = (0..count).find(|&index| *entry(index) == new);
    let index = known.unwrap_or(count);
    if index as usize == ENTRIES {
        return false;
    }
    if known.is_none() {
        // SAFETY: see `Entries`: no word names this entry yet, and the lock is held.
        unsafe { *ENTRIES_SET.0[index as usize].get() = new };
        COUNT.store(count + 1, Ordering::Relaxed);
    }
    // Before the word: who sees the policy sees this, too.
    MIXED.store(1, Ordering::Relaxed);
    STRICT.store(new.plan.is_strict().into(), Ordering::Relaxed);
    CURRENT.store(index, Ordering::Release);
    true
}

/// The process's policy, and what it means on this machine.
pub(crate) fn current() -> (&'static Policy, &'static Plan) {
    let entry = entry(CURRENT.load(Ordering::Acquire));
    (&entry.policy, &entry.plan)
}

/// A number that is another one when the policy is.
pub(crate) fn token() -> u32 {
    CURRENT.load(Ordering::Acquire)
}

/// True while memory elsewhere is worse than none.
pub(crate) fn is_strict() -> bool {
    STRICT.load(Ordering::Relaxed) != 0
}

/// True once CPUs may cache memory of other nodes than their own: memory is or was spread, or the policy
/// changed.
pub(crate) fn is_mixed() -> bool {
    MIXED.load(Ordering::Relaxed) != 0
}
