//! Address space: reserve, allow, give back; every call can be made to fail in a test.
#![allow(
    unsafe_code,
    reason = "the memory calls of Linux, on address space that this crate reserved"
)]

use super::arch::{HOT, syscall};
use super::errno::Errno;
use super::fatal::die;
use super::fault::{Call, admit, note_split, refused};
use super::{file, kernel};
use crate::base::config::PAGES_ASKED;
use crate::base::nodemask::{KERNEL_NODES, NodeMask};
use crate::base::sync::{AtomicU32, Ordering};

/// One system call, admitted, counted when refused.
///
/// # Safety
/// As [`syscall`].
pub(super) unsafe fn call(kind: Call, number: i64, args: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let result = admit(kind).and_then(|()| Errno::check(unsafe { syscall(number, args) }));
    if result.is_err() {
        refused(kind);
    }
    result
}

fn protection(bits: i32) -> usize {
    usize::try_from(bits).unwrap_or(0)
}

/// A map of no file.
///
/// # Safety
/// As [`syscall`]: with `MAP_FIXED` the caller answers for what was mapped there.
unsafe fn mmap(address: usize, bytes: usize, access: i32, flags: i32) -> Result<usize, Errno> {
    let args = [address, bytes, protection(access), protection(flags), usize::MAX, 0];
    // SAFETY: the caller's promise.
    unsafe { call(Call::Mmap, libc::SYS_mmap, args) }
}

/// An address inside the program or library that this crate is linked into.
pub(crate) fn module_address() -> usize {
    core::ptr::from_ref(&HOT).expose_provenance()
}

/// Reserves `bytes` of address space without access or charge, at `hint` if that is free (0: anywhere).
/// Kernel: mmap(2), `MAP_NORESERVE`.
pub(crate) fn reserve(hint: usize, bytes: usize) -> Result<usize, Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new map at an address that the kernel chooses touches nothing that exists.
    unsafe { mmap(hint, bytes, libc::PROT_NONE, flags) }
}

/// As [`reserve`], at `address` or nowhere, readable (zeros) or without access.
pub(crate) fn reserve_at(address: usize, bytes: usize, readable: bool) -> Result<(), Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = if readable { libc::PROT_READ } else { libc::PROT_NONE };
    // SAFETY: as in `reserve`.
    let start = unsafe { mmap(address, bytes, access, flags) }?;
    if start != address {
        release(start, bytes);
        return Err(Errno(libc::EEXIST));
    }
    Ok(())
}

/// Makes the map that ends at `end` longer, in place, by `bytes`: what is new has the access, the node and
/// all else of the last `page` bytes.  Refused where any other map is in the way: without
/// `MREMAP_MAYMOVE` nothing is moved or unmapped.  Kernel: mremap(2), which compares the end of the map
/// with that of the old range before it grows one.
pub(crate) fn lengthen(end: usize, page: usize, bytes: usize) -> Result<(), Errno> {
    let args = [end - page, page, page + bytes, 0, 0, 0];
    // SAFETY: the last page is this crate's own reservation, and what follows it is mapped only where
    // nothing is.
    unsafe { call(Call::Mremap, libc::SYS_mremap, args) }.map(|_| ())
}

/// Maps `bytes` of zeroed, writable memory.
pub(crate) fn map(bytes: usize) -> Result<usize, Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as in `reserve`.
    unsafe { mmap(0, bytes, access, flags) }
}

/// Unmaps a range that [`reserve`] or [`map`] returned, or a part of it.  False: the system refuses (a hole in a
/// map makes two of it), and it stays mapped.
pub(crate) fn release(address: usize, bytes: usize) -> bool {
    // SAFETY: the range is this crate's own reservation, and the caller has given up all use of it.
    let unmap = || unsafe { call(Call::Munmap, libc::SYS_munmap, [address, bytes, 0, 0, 0, 0]) };
    bytes == 0 || unmap().is_ok()
}

/// Makes a part of a reservation readable and writable.  Charged where overcommit is strict.
pub(crate) fn commit(address: usize, bytes: usize) -> Result<(), Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    note_split();
    // SAFETY: the range is this crate's own reservation.
    unsafe {
        call(Call::Mprotect, libc::SYS_mprotect, [address, bytes, protection(access), 0, 0, 0])
    }
    .map(|_| ())
}

/// Makes a part of a reservation readable: zeros, without charge.
pub(crate) fn allow_read(address: usize, bytes: usize) -> Result<(), Errno> {
    note_split();
    // SAFETY: the range is this crate's own reservation.
    unsafe {
        call(
            Call::Mprotect,
            libc::SYS_mprotect,
            [address, bytes, protection(libc::PROT_READ), 0, 0, 0],
        )
    }
    .map(|_| ())
}

/// Takes the access to a part of a reservation away.
pub(crate) fn forbid(address: usize, bytes: usize) {
    note_split();
    // SAFETY: the range is this crate's own reservation, and the caller has given up all use of it.
    // A refusal leaves it writable, which loses nothing.
    let _ = unsafe { call(Call::Mprotect, libc::SYS_mprotect, [address, bytes, 0, 0, 0, 0]) };
}

/// Gives the pages of a range back; the next touch reads zeros.  Kernel: madvise(2), `MADV_DONTNEED`.
pub(crate) fn decommit(address: usize, bytes: usize) -> Result<(), Errno> {
    advise(address, bytes, libc::MADV_DONTNEED)
}

/// Has the pages of a writable range made at once: a tenth of the cost of a fault each.  Kernel:
/// madvise(2), `MADV_POPULATE_WRITE`, 5.14; without it the faults come one by one.
pub(crate) fn populate(address: usize, bytes: usize) {
    let _ = advise(address, bytes, libc::MADV_POPULATE_WRITE);
}

/// Has the pages of a writable range made now, as [`populate`], or one by one where the kernel cannot.
pub(crate) fn touch(address: usize, bytes: usize, page: usize) -> Result<(), Errno> {
    match advise(address, bytes, libc::MADV_POPULATE_WRITE) {
        Err(Errno(libc::EINVAL)) => {
            for at in (address..address + bytes).step_by(page) {
                // SAFETY: the range is writable and in the hands of the caller.
                let word: &AtomicU32 = unsafe { record(at) };
                word.fetch_or(0, Ordering::Relaxed);
            }
            Ok(())
        }
        populated => populated,
    }
}

/// The kernel's node of each page of a range of `nodes.len()` pages, at most [`PAGES_ASKED`]; negative for a
/// page that has no memory (`-ENOENT`).  Kernel: `move_pages(2)`, with no target.
pub(crate) fn pages_of(address: usize, page: usize, nodes: &mut [i32]) -> Result<(), Errno> {
    let mut pages = [0; PAGES_ASKED];
    let count = nodes.len().min(PAGES_ASKED);
    for (index, at) in pages.iter_mut().enumerate().take(count) {
        *at = address + index * page;
    }
    let pages = pages.as_ptr().expose_provenance();
    let answers = nodes.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel reads `count` addresses and writes as many answers; no page is moved.
    unsafe { call(Call::MovePages, libc::SYS_move_pages, [0, count, pages, 0, answers, 0]) }
        .map(|_| ())
}

/// Moves pages to another place, where what was is dropped; the old place reads zeros.  Kernel:
/// mremap(2), `MREMAP_DONTUNMAP`, 5.7.
///
/// The kernel unmaps the target before it compares what is mapped with `RLIMIT_AS` and `RLIMIT_DATA`.
/// Where a program has set them below that, it then refuses, and refuses a map in the hole, too.  So it
/// must grant one page more first.  Several maps are not moved: newer kernels (6.17) may stop amid them,
/// with some of the pages here and some there.
pub(crate) fn move_pages(from: usize, to: usize, bytes: usize) -> Result<(), Errno> {
    release(map(PAGE)?, PAGE);
    if !is_one_map(from, bytes) {
        return Err(Errno(libc::EFAULT));
    }
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    note_split();
    // SAFETY: both ranges are the crate's own, and in the hands of the caller, who gives up what is in
    // the second one.
    let moved = unsafe {
        call(Call::Mremap, libc::SYS_mremap, [from, bytes, bytes, protection(flags), to, 0])
    };
    match moved {
        Ok(_) => return Ok(()),
        // An older kernel, which has done nothing: not asked again.
        Err(Errno(libc::EINVAL)) => MAPS_MAX.store(1, Ordering::Relaxed),
        Err(_) => fill_hole(to, bytes),
    }
    moved.map(|_| ())
}

/// At most a base page, in bytes: the kernel rounds it up.
const PAGE: usize = 4096;

/// True when a range lies in one map of the process: programs split them by mseal, madvise or maps of
/// their own.  Asks for more in place, which is refused either way, so it is not counted: with `EFAULT`
/// where the map ends before the range does.  Kernel: mremap(2), ERRORS.
fn is_one_map(address: usize, bytes: usize) -> bool {
    if admit(Call::Mremap).is_err() {
        refused(Call::Mremap);
        return false;
    }
    let args = [address, bytes, bytes + PAGE, 0, 0, 0];
    // SAFETY: at most a page is mapped that is not mapped yet.
    match Errno::check(unsafe { syscall(libc::SYS_mremap, args) }) {
        Ok(_) => {
            release(address + bytes, PAGE);
            true
        }
        Err(errno) => errno != Errno(libc::EFAULT),
    }
}

/// Maps zeros where a refused move (strict overcommit, no memory for page tables) may have left a hole.
#[cold]
fn fill_hole(address: usize, bytes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    note_split();
    // SAFETY: the range is this crate's own, and the caller has given up what is in it.
    let filled = unsafe { mmap(address, bytes, access, flags) };
    if filled.is_err() {
        // Any other map could come to stand there, and be taken for ours.
        die(format_args!("the system has unmapped {address:#x} and refuses to map it again"));
    }
}

/// Maps that a process may have; 1 where moves are not to be had.
static MAPS_MAX: AtomicU32 = AtomicU32::new(65530);

/// Maps that a process may have, as far as moves are concerned.
pub(crate) fn maps_max() -> u32 {
    MAPS_MAX.load(Ordering::Relaxed)
}

/// Asks how many maps a process may have: at start, since a sandbox entered later may not allow it.
/// Kernel: proc(5), `max_map_count`.
pub(crate) fn start() {
    let mut text = [0; 32];
    let read = file::read(b"/proc/sys/vm/max_map_count\0", &mut text).ok();
    let max = read.and_then(|text| core::str::from_utf8(text.trim_ascii_end()).ok()?.parse().ok());
    let max = if kernel::is_emulated() { Some(1) } else { max };
    if let Some(max) = max {
        MAPS_MAX.store(max, Ordering::Relaxed);
    }
}

/// Asks for huge pages under a range.  Kernel: madvise(2), `MADV_HUGEPAGE`.
pub(crate) fn prefer_huge(address: usize, bytes: usize) {
    // A refusal (a kernel without them) leaves base pages.
    let _ = advise(address, bytes, libc::MADV_HUGEPAGE);
}

/// Leaves a range out of core dumps.
pub(crate) fn no_dump(address: usize, bytes: usize) {
    // A refusal only makes dumps larger.
    let _ = advise(address, bytes, libc::MADV_DONTDUMP);
}

/// Makes a range read zeros in a child of fork.  Kernel: 4.14.
pub(crate) fn wipe_on_fork(address: usize, bytes: usize) -> Result<(), Errno> {
    advise(address, bytes, libc::MADV_WIPEONFORK)
}

fn advise(address: usize, bytes: usize, advice: i32) -> Result<(), Errno> {
    if !matches!(advice, libc::MADV_DONTNEED | libc::MADV_POPULATE_WRITE) {
        note_split();
    }
    // SAFETY: the range is this crate's own, and the caller has given up its contents where the
    // advice drops them.
    unsafe { call(Call::Madvise, libc::SYS_madvise, [address, bytes, protection(advice), 0, 0, 0]) }
        .map(|_| ())
}

/// Prefers node `node` for the pages of a range, whatever a cpuset does meanwhile.  Kernel: mbind(2),
/// `MPOL_PREFERRED`: it falls back to other nodes, where `MPOL_BIND` would kill the process.
pub(crate) fn prefer_node(address: usize, bytes: usize, node: u32) -> Result<(), Errno> {
    const MPOL_PREFERRED: usize = 1;
    bind(address, bytes, MPOL_PREFERRED, &NodeMask::one(node))
}

/// Spreads the pages of a range over nodes, one after the other.  Kernel: mbind(2), `MPOL_INTERLEAVE`.
pub(crate) fn interleave(address: usize, bytes: usize, nodes: &NodeMask) -> Result<(), Errno> {
    const MPOL_INTERLEAVE: usize = 3;
    bind(address, bytes, MPOL_INTERLEAVE, nodes)
}

fn bind(address: usize, bytes: usize, mode: usize, nodes: &NodeMask) -> Result<(), Errno> {
    /// A change of the cpuset leaves the nodes as they are told here.
    const MPOL_F_STATIC_NODES: usize = 1 << 15;
    if nodes.is_empty() {
        return Err(Errno(libc::EINVAL));
    }
    if REFUSES_POLICIES.load(Ordering::Relaxed) != 0 {
        return Err(Errno::PERM);
    }
    note_split();
    let mask = nodes.words().as_ptr().expose_provenance();
    let mode = mode | MPOL_F_STATIC_NODES;
    // SAFETY: the range is this crate's own reservation; the mask outlives the call.
    let bound = unsafe {
        // The kernel takes the number of bits, plus one.
        call(Call::Mbind, libc::SYS_mbind, [address, bytes, mode, mask, KERNEL_NODES + 1, 0])
    };
    if matches!(bound, Err(Errno::PERM | Errno(libc::ENOSYS))) {
        // A sandbox, or a kernel without nodes: not asked again.
        REFUSES_POLICIES.store(1, Ordering::Relaxed);
    }
    bound.map(|_| ())
}

/// 1 once the system has refused a policy for good.
static REFUSES_POLICIES: AtomicU32 = AtomicU32::new(0);

/// Asks for the nodes that this process may have memory of; false where a sandbox refuses the question.
/// Kernel: `get_mempolicy(2)`, `MPOL_F_MEMS_ALLOWED`.
pub(crate) fn allowed_nodes(mask: &mut NodeMask) -> bool {
    const MPOL_F_MEMS_ALLOWED: usize = 4;
    let address = mask.words_mut().as_mut_ptr().expose_provenance();
    // SAFETY: the mask is written for its length.
    unsafe {
        call(
            Call::GetMempolicy,
            libc::SYS_get_mempolicy,
            [0, address, KERNEL_NODES, 0, MPOL_F_MEMS_ALLOWED, 0],
        )
    }
    .is_ok()
}

/// Zeroes `bytes` at `address`.
///
/// # Safety
/// The range is writable and the caller's alone.
pub(crate) unsafe fn zero(address: usize, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { fill(address, 0, bytes) };
}

/// Sets `bytes` at `address` to `byte`.
///
/// # Safety
/// As [`zero`].
pub(crate) unsafe fn fill(address: usize, byte: u8, bytes: usize) {
    let start = core::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: the caller's promise.
    unsafe { start.write_bytes(byte, bytes) };
}

/// Copies the first `bytes` of a block of a class to another, and what follows up to a multiple of 16, or
/// of 8 for at most 8 bytes: lengths that need no call.
///
/// # Safety
/// Both blocks are live, apart, of classes that hold `bytes`, and the target is the caller's alone.
#[inline]
pub(crate) unsafe fn copy_small(from: usize, to: usize, bytes: usize) {
    if bytes <= 8 {
        // SAFETY: the caller's promise: every class holds 8 bytes.
        unsafe { copy(from, to, 8) };
    } else if bytes <= 64 {
        // Four vectors, of which some are the last one again: a branch would not learn lengths that
        // come in no order.
        let last = (bytes - 1) & !15;
        for at in [0, last.min(16), last.min(32), last] {
            // SAFETY: a class that holds more than 8 bytes holds the next multiple of 16.
            unsafe { copy(from + at, to + at, 16) };
        }
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy(from, to, bytes) };
    }
}

/// Copies `bytes` from one block to another.
///
/// # Safety
/// Both ranges are live, apart, and the target is the caller's alone.
#[inline]
pub(crate) unsafe fn copy(from: usize, to: usize, bytes: usize) {
    let source = core::ptr::with_exposed_provenance::<u8>(from);
    // SAFETY: the caller's promise.
    unsafe {
        core::ptr::copy_nonoverlapping(source, core::ptr::with_exposed_provenance_mut(to), bytes)
    };
}

/// As [`copy`], for whole pages of which many may be untouched: what reads zeros at both ends stays so.
///
/// # Safety
/// As [`copy`]; both addresses are multiples of 4096, as `bytes` is.
pub(crate) unsafe fn copy_sparse(from: usize, to: usize, bytes: usize) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: the caller's promise.
        let [source, target] = [from + at, to + at].map(|page| unsafe { is_zero::<PAGE>(page) });
        if !(source && target) {
            // SAFETY: as above.
            unsafe { copy(from + at, to + at, PAGE) };
        }
    }
}

/// True when `N` bytes at `address` are zeros.
///
/// # Safety
/// They may be read, and `address` and `N` are multiples of 16.
unsafe fn is_zero<const N: usize>(address: usize) -> bool {
    let words = core::ptr::with_exposed_provenance::<u128>(address);
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(words, N / 16) }.iter().all(|&word| word == 0)
}

/// The word of a dead object that links it to the next: its first.
pub(crate) fn link(object: usize) -> &'static crate::base::sync::AtomicUsize {
    // SAFETY: the object was just given up, is at least 8 bytes long and aligned to 8, is writable, and
    // is nobody's until it is taken off the list that this link is for.
    unsafe { record(object) }
}

/// A record of type `T` at an address inside the allocator's own metadata.
///
/// # Safety
/// The address is mapped for as long as the program runs, aligned for `T`, and holds a `T` whose
/// fields are all atomics (zero bytes are a valid one).
pub(crate) unsafe fn record<T>(address: usize) -> &'static T {
    // SAFETY: the caller's promise.
    unsafe { &*core::ptr::with_exposed_provenance::<T>(address) }
}
