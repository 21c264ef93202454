//! A program of operations, read from bytes: what the fuzzer makes up, and what its corpus is replayed as.
//!
//! Any step may run on a second thread, so blocks are freed and resized where they were not allocated.
#![allow(unsafe_code, reason = "blocks are raw memory, and the calls of GlobalAlloc are unsafe")]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use arbitrary::{Arbitrary, Result, Unstructured};
use homenode::{HomeNode, How};

use super::heap::{Appetite, Block, Model, Verdict, agrees, is_empty, release};

const HEAP: HomeNode = HomeNode::new();
/// Steps of one program at most: the rest of the bytes is not looked at.
const STEPS: usize = 300;
/// Blocks that one step allocates at most: more than a packed slab and a rack hold of small ones.
const BURST: usize = 600;
/// Bytes that a program holds at most; a step that would go beyond frees half of all blocks first.
const HELD_BYTES: usize = 64 << 20;

/// A program.
#[derive(Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
}

impl<'a> Arbitrary<'a> for Program {
    /// Steps up to the end of the bytes: derived, each step would say whether another one comes, and most
    /// programs would be short.
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let mut steps = Vec::new();
        while !bytes.is_empty() && steps.len() < STEPS {
            steps.push(Step::arbitrary(bytes)?);
        }
        Ok(Self { steps })
    }
}

#[derive(Debug)]
struct Step {
    elsewhere: bool,
    operation: Operation,
}

impl<'a> Arbitrary<'a> for Step {
    /// One byte says what and where; derived, it would take five.
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let byte = u8::arbitrary(bytes)?;
        Ok(Self { elsewhere: byte >= 128, operation: Operation::of(byte % 32, bytes)? })
    }
}

#[derive(Debug)]
enum Operation {
    Allocate(Size),
    AllocateAligned(Size, Align),
    AllocateZeroed(Size, Align),
    AllocateByLayout(Size, Align),
    AllocateZeroedByLayout(Size, Align),
    /// Many blocks of one size, so that slabs, racks and spans run over.
    Burst(Size, u16),
    Reallocate(Pick, Size),
    ReallocateNearby(Pick, i8),
    ReallocateByLayout(Pick, Size),
    Free(Pick),
    FreeSized(Pick),
    /// A part of all blocks, from the oldest on or from the newest.
    FreeMany(u8, bool),
    /// A look at a block that stays.
    Look(Pick),
    DrainCpu(u8, Proof),
    DrainAll(Proof),
    Trim,
    /// Holds the whole heap against the model.
    Check,
    /// More than any address space has.
    AskTooMuch(u8, Align, Pick),
    /// One system call to come is refused.
    Refuse(Refused, u8),
}

impl Operation {
    fn of(kind: u8, bytes: &mut Unstructured<'_>) -> Result<Self> {
        Ok(match kind {
            0..3 => Self::Allocate(take(bytes)?),
            3 => Self::AllocateAligned(take(bytes)?, take(bytes)?),
            4 => Self::AllocateZeroed(take(bytes)?, take(bytes)?),
            5 | 6 => Self::AllocateByLayout(take(bytes)?, take(bytes)?),
            7 => Self::AllocateZeroedByLayout(take(bytes)?, take(bytes)?),
            8..11 => Self::Burst(take(bytes)?, take(bytes)?),
            11 | 12 => Self::Reallocate(take(bytes)?, take(bytes)?),
            13 => Self::ReallocateNearby(take(bytes)?, take(bytes)?),
            14 => Self::ReallocateByLayout(take(bytes)?, take(bytes)?),
            15..18 => Self::Free(take(bytes)?),
            18 | 19 => Self::FreeSized(take(bytes)?),
            20..24 => Self::FreeMany(take(bytes)?, take(bytes)?),
            24 => Self::Look(take(bytes)?),
            25 => Self::DrainCpu(take(bytes)?, take(bytes)?),
            26 => Self::DrainAll(take(bytes)?),
            27 => Self::Trim,
            28 | 29 => Self::Check,
            30 => Self::AskTooMuch(take(bytes)?, take(bytes)?, take(bytes)?),
            _ => Self::Refuse(take(bytes)?, take(bytes)?),
        })
    }
}

fn take<'a, T: Arbitrary<'a>>(bytes: &mut Unstructured<'a>) -> Result<T> {
    bytes.arbitrary()
}

/// A size of any range, in three bytes.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Size {
    range: u8,
    fine: u16,
}

impl Size {
    fn bytes(self) -> usize {
        let fine = usize::from(self.fine);
        match self.range % 8 {
            0 => fine % 130,
            1 => fine % 1100,
            2 => fine,
            3 => fine * 16,
            4 => fine * 64,
            5 => fine * 200,
            // Around powers of two, and around whole compounds.
            6 => (1 << (fine % 24)) + fine / 24 % 3 - usize::from(fine > 2),
            _ => ((1 + fine % 6) << 21) + fine / 6 % 3 * 4096 - fine / 18 % 2,
        }
    }
}

/// A power of two up to 4 MiB.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Align(u8);

impl Align {
    fn bytes(self) -> usize {
        1 << (self.0 % 23)
    }

    /// What `aligned_alloc` may be asked for.
    fn of_c(self) -> usize {
        self.bytes().max(16)
    }
}

/// One of the blocks held.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Pick(u16);

impl Pick {
    fn of(self, model: &Model) -> Option<usize> {
        usize::from(self.0).checked_rem(model.blocks().len())
    }
}

/// How a drain is to make sure of the CPU's sections.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Proof(u8);

impl Proof {
    fn how(self) -> How {
        [How::Auto, How::Fence, How::Quiet][usize::from(self.0 % 3)]
    }
}

/// A system call whose refusal leaves no trace in later programs.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Refused(u8);

impl Refused {
    fn name(self) -> &'static str {
        ["mmap", "mprotect", "madvise", "mremap"][usize::from(self.0 % 4)]
    }
}

/// What runs a program.
struct Machine {
    model: Model,
    /// The call that is to be refused, once armed.
    refused: Option<&'static str>,
}

impl Program {
    /// Runs the program, and holds the heap against the emptiness that must be left.
    pub(crate) fn run(self) -> Verdict {
        let appetite = Appetite {
            largest: usize::MAX,
            bytes: usize::MAX,
            blocks: usize::MAX,
            may_starve: false,
        };
        let mut machine = Machine { model: Model::new(1, appetite), refused: None };
        let program = Arc::new(self);
        let mut ran = Ok(());
        for (number, step) in program.steps.iter().enumerate() {
            if step.elsewhere {
                (machine, ran) = elsewhere(Job { machine, program: program.clone(), number });
            } else {
                ran = machine.step(&step.operation);
            }
            if ran.is_err() {
                break;
            }
        }
        machine.disarm();
        ran.and_then(|()| machine.model.finish()).and_then(|()| is_empty())
    }
}

/// A step of a program, for the second thread.
struct Job {
    machine: Machine,
    program: Arc<Program>,
    number: usize,
}

type Outcome = (Machine, Verdict);

/// Runs one step on the second thread, which lives as long as the process.
fn elsewhere(job: Job) -> Outcome {
    static THREAD: OnceLock<Mutex<(Sender<Job>, Receiver<Outcome>)>> = OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let ((jobs, next), (done, outcomes)) = (channel::<Job>(), channel());
        thread::spawn(move || {
            for mut job in next {
                let verdict = job.machine.step(&job.program.steps[job.number].operation);
                if done.send((job.machine, verdict)).is_err() {
                    return;
                }
            }
        });
        Mutex::new((jobs, outcomes))
    });
    let thread = thread.lock().unwrap_or_else(PoisonError::into_inner);
    thread.0.send(job).expect("the second thread waits");
    thread.1.recv().expect("the second thread answers")
}

impl Machine {
    fn step(&mut self, operation: &Operation) -> Verdict {
        let model = &mut self.model;
        match *operation {
            Operation::Free(pick) => with(model, pick, |_, block| {
                release(&block);
                Ok(())
            }),
            Operation::FreeSized(pick) => with(model, pick, |_, block| {
                free_sized(&block);
                Ok(())
            }),
            Operation::FreeMany(part, from_the_oldest) => free_many(model, part, from_the_oldest),
            Operation::Look(pick) => with(model, pick, Model::admit),
            Operation::DrainCpu(cpu, proof) => {
                // Pending or not: a later drain goes on from there.
                let _ = homenode::drain_cpu(u32::from(cpu % 4), proof.how());
                Ok(())
            }
            Operation::DrainAll(proof) => {
                let _ = homenode::drain_all(proof.how());
                Ok(())
            }
            Operation::Trim => {
                homenode::trim();
                Ok(())
            }
            Operation::Check => self.check(),
            Operation::AskTooMuch(power, align, pick) => ask_too_much(model, power, align, pick),
            Operation::Refuse(call, after) => self.arm(call, after),
            Operation::Reallocate(..)
            | Operation::ReallocateNearby(..)
            | Operation::ReallocateByLayout(..) => reallocate(model, operation),
            _ => allocate(model, operation),
        }
    }

    fn check(&self) -> Verdict {
        // A refusal that is still to come would meet the drains of the check.
        if self.refused.is_none() { agrees(self.model.blocks().iter()) } else { Ok(()) }
    }

    fn arm(&mut self, call: Refused, after: u8) -> Verdict {
        // A second refusal amid the answer to a first one is beyond what any program gets over.
        if self.refused.is_none() {
            self.refused = Some(call.name());
            self.model.may_starve(true);
            if !homenode::fail_call(call.name(), u32::from(after % 16)) {
                return Err(format!("there is no call named {}", call.name()));
            }
        }
        Ok(())
    }

    fn disarm(&mut self) {
        if let Some(call) = self.refused {
            let _ = homenode::fail_call(call, u32::MAX - 1);
        }
    }
}

/// Calls `act` with a block that the model lets go, if it has one.
fn with(model: &mut Model, pick: Pick, act: impl FnOnce(&mut Model, Block) -> Verdict) -> Verdict {
    let Some(at) = pick.of(model) else { return Ok(()) };
    let block = model.remove(at)?;
    act(model, block)
}

/// The layout that a block has now; a size of zero is none.
fn layout(size: usize, align: usize) -> Option<Layout> {
    Layout::from_size_align(size, align).ok().filter(|layout| layout.size() > 0)
}

fn free_sized(block: &Block) {
    match layout(block.size, block.align) {
        // SAFETY: the block is live, nobody holds it any more, and it has this layout.
        Some(layout) => unsafe { HEAP.dealloc(block.pointer(), layout) },
        None => release(block),
    }
}

fn free_many(model: &mut Model, part: u8, from_the_oldest: bool) -> Verdict {
    let count = model.blocks().len() * usize::from(part) / 255;
    for number in 0..count {
        let at = if from_the_oldest { 0 } else { model.blocks().len() - 1 };
        let block = model.remove(at)?;
        if number % 2 == 0 { release(&block) } else { free_sized(&block) }
    }
    Ok(())
}

fn allocate(model: &mut Model, operation: &Operation) -> Verdict {
    if model.bytes() > HELD_BYTES {
        free_many(model, 128, true)?;
    }
    match *operation {
        Operation::AllocateAligned(size, align) => {
            let (size, align) = (size.bytes(), align.of_c());
            model.keep(homenode::alloc_aligned(size, align), size, align)
        }
        Operation::AllocateZeroed(size, align) => {
            let (size, align) = (size.bytes(), align.of_c());
            model.keep_zeroed(homenode::alloc_zeroed(size, align), size, align)
        }
        Operation::AllocateByLayout(size, align) => {
            let Some(layout) = layout(size.bytes(), align.bytes()) else { return Ok(()) };
            // SAFETY: the layout has a size.
            model.keep(unsafe { HEAP.alloc(layout) }, layout.size(), layout.align())
        }
        Operation::AllocateZeroedByLayout(size, align) => {
            let Some(layout) = layout(size.bytes(), align.bytes()) else { return Ok(()) };
            // SAFETY: the layout has a size.
            let pointer = unsafe { HEAP.alloc_zeroed(layout) };
            model.keep_zeroed(pointer, layout.size(), layout.align())
        }
        Operation::Burst(size, count) => {
            let size = size.bytes();
            let room = HELD_BYTES / 2 / size.max(1);
            let count = usize::from(count) % BURST.min(room.max(1));
            (0..count).try_for_each(|_| model.keep(homenode::alloc(size), size, 16))
        }
        Operation::Allocate(size) => {
            let size = size.bytes();
            model.keep(homenode::alloc(size), size, 16)
        }
        _ => Err(format!("{operation:?} is no allocation")),
    }
}

fn reallocate(model: &mut Model, operation: &Operation) -> Verdict {
    match *operation {
        Operation::ReallocateByLayout(pick, size) => with(model, pick, |model, block| {
            let (old, new) = (layout(block.size, block.align), layout(size.bytes(), block.align));
            let (Some(old), Some(new)) = (old, new) else { return model.admit(block) };
            // SAFETY: the block is live, has this layout, and the new size is not zero.
            let pointer = unsafe { HEAP.realloc(block.pointer(), old, new.size()) };
            // Of what is usable beyond the layout, GlobalAlloc promises nothing.
            model.keep_resized(block, pointer, new.size(), old.size())
        }),
        Operation::Reallocate(pick, size) => {
            with(model, pick, |model, block| resize(model, block, size.bytes()))
        }
        Operation::ReallocateNearby(pick, step) => with(model, pick, |model, block| {
            let size = block.size.saturating_add_signed(step.into());
            resize(model, block, size)
        }),
        _ => Err(format!("{operation:?} is no change of a length")),
    }
}

fn resize(model: &mut Model, block: Block, size: usize) -> Verdict {
    // SAFETY: the block is live, this program's own, and its usable size was just asked for.
    let pointer = unsafe { homenode::realloc(block.pointer(), block.usable, size, block.align) };
    model.keep_resized(block, pointer, size, block.usable)
}

/// Requests that no machine can serve get null, and leave a block that was to grow as it was.
fn ask_too_much(model: &mut Model, power: u8, align: Align, pick: Pick) -> Verdict {
    let size = (usize::MAX >> (power % 16)) - usize::from(power);
    let align = align.of_c();
    let pointers = [
        homenode::alloc(size),
        homenode::alloc_aligned(size, align),
        homenode::alloc_zeroed(size, align),
    ];
    if pointers.iter().any(|pointer| !pointer.is_null()) {
        return Err(format!("{size:#x} bytes at {align:#x}: {pointers:?}"));
    }
    with(model, pick, |model, block| {
        // SAFETY: as in `resize`.
        let pointer =
            unsafe { homenode::realloc(block.pointer(), block.usable, size, block.align) };
        if !pointer.is_null() {
            return Err(format!("{block:x?} grew to {size:#x} bytes at {pointer:p}"));
        }
        model.admit(block)
    })
}
