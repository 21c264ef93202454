//! front: what callers see.  Misses come in here, and every request that no hit path can serve.
#![allow(unsafe_code, reason = "blocks are raw memory at this layer's edge")]

#[cfg(feature = "allocator-api2")]
mod allocator;
mod busy;
mod checked;
mod deferred;
mod drain;
mod global;
mod hit;
mod layout;
mod life;
mod limits;
mod place;
mod report;
mod settings;
mod start;
mod stats;
mod usage;

pub use drain::{drain_all, drain_cpu, trim};
pub use global::HomeNode;
pub use life::{vfork_begin, vfork_end};
pub use limits::{
    fit_address_space, fit_locked_memory, fit_physical_memory, keep_resident, note_locked,
};
pub use place::{NodeError, alloc_on_node, migrate, node_of, pages_of, process_policy, set_policy};
pub use report::{print_stats, stats_json};
pub use stats::{Census, calls_until_failure, check, fail_call, fail_calls};
pub use usage::{FreeBlocks, Usage};

use busy::Busy;
use checked::Call;
pub use checked::is_full as checks_fully;

use crate::base::classes::{CLASS_BYTES_MAX, Class};
use crate::base::config::SLACK_BYTES;
use crate::base::sync::Ordering;
use crate::pageheap::emergency;
use crate::pageheap::large::{self, Want};
use crate::region::{self, Place, State};
use crate::slab::{self, Homecoming};
use crate::sys::fatal::{Fault, die, misuse, not_a_start, say};
use crate::sys::{mem, process};
use crate::{percpu, policy, topo, transfer};

/// Largest request, in bytes: what a pointer difference can express.
const REQUEST_MAX: usize = isize::MAX.cast_unsigned();

/// What the hit path of malloc jumps to.
#[cold]
pub extern "C" fn slow_alloc(size: usize) -> *mut u8 {
    if checked::is_on() {
        return checked::alloc(size, 16, false);
    }
    match Class::of_size(size) {
        Some(class) => alloc_class(class),
        None => alloc_large(size, 16, Want::Block).0,
    }
}

/// What the hit path of an allocation by class jumps to.
#[cold]
extern "C" fn slow_class(class: usize) -> *mut u8 {
    let alloc = if checked::is_on() { checked::alloc_class } else { alloc_class };
    u8::try_from(class).ok().and_then(Class::from_byte).map_or(core::ptr::null_mut(), alloc)
}

/// What the hit path of free jumps to in a Rust program: every pointer must be ours.
///
/// # Safety
/// `object` is null or was handed out and is not used any more.
#[cold]
unsafe extern "C" fn slow_free(object: *mut u8) {
    // SAFETY: the caller's promise.
    if !unsafe { free_if_ours(object) } && !object.is_null() {
        die_of_stranger(object);
    }
}

/// Ends the program: a pointer outside our space was freed, and there is no next allocator.
#[cold]
pub fn die_of_stranger(object: *mut u8) -> ! {
    die(format_args!(
        "pointer outside the heap: free of {object:p}, which homenode never handed out; \
         find which allocator it comes from"
    ))
}

/// Says that another allocator serves in this program.
#[cold]
pub fn say_aside() {
    say(format_args!(
        "a sanitizer's runtime is in this program; its allocator serves in our place"
    ));
}

/// Ends the program: a throwing new failed, and no C++ library is there to throw.
#[cold]
pub extern "C" fn die_of_no_new() -> ! {
    die(format_args!(
        "out of memory in operator new, and no C++ library to throw bad_alloc; link libstdc++ or libc++"
    ))
}

/// Ends the program after a panic of the allocator itself.
#[cold]
pub fn die_of_panic(info: &core::panic::PanicInfo<'_>) -> ! {
    die(format_args!("a bug of homenode: {info}"))
}

/// Takes a block back by the slow path; false for a pointer outside our space, null among them.
///
/// # Safety
/// `object` is not ours, or was handed out and is not used any more.
#[cold]
pub unsafe fn free_if_ours(object: *mut u8) -> bool {
    let address = object.expose_provenance();
    match region::locate(address) {
        Some(_) if checked::is_full() => free_checked(address),
        // Both are jumps: no frame stays below them.
        Some(place) if large::starts_at(&place) => free_large(address),
        Some(_) => free_slowly(address),
        None => false,
    }
}

#[cold]
fn free_checked(address: usize) -> bool {
    region::locate(address).map(|place| checked::free(&place)).is_some()
}

/// Parks a large block, without a lock; what cannot be parked goes the slow way.
#[cold]
fn free_large(address: usize) -> bool {
    region::locate(address).and_then(large::park).is_none_or(free_slowly)
}

#[cold]
fn free_slowly(address: usize) -> bool {
    let Some(place) = region::locate(address) else { return false };
    match Busy::enter() {
        Some(_busy) => {
            process::notice_fork();
            free_here(&place);
        }
        None => {
            // A bad pointer is named here: its first word is about to be written.
            block_bytes(&place);
            deferred::push(address);
        }
    }
    true
}

fn prepare() -> bool {
    if !start::ensure() {
        return false;
    }
    process::notice_fork();
    emergency::sweep();
    large::tick();
    deferred::take_all(|object| {
        if let Some(place) = region::locate(object) {
            if checked::is_on() {
                checked::free_deferred(&place);
            } else {
                free_here(&place);
            }
        }
    });
    true
}

#[cold]
fn alloc_class(class: Class) -> *mut u8 {
    let size = class.shape().size as usize;
    let Some(_busy) = Busy::enter() else {
        return alloc_in_handler(size, size & size.wrapping_neg());
    };
    pointer(prepare_and(|| percpu::allocate(class).ok()))
}

/// Runs `take`, and once more after what can be had of all that is cached has gone back, before it gives up.
fn prepare_and<T>(take: impl Fn() -> Option<T>) -> Option<T> {
    if !prepare() {
        return None;
    }
    take().or_else(|| {
        if checked::is_on() {
            checked::release(true);
        }
        large::empty_slots();
        percpu::reclaim();
        trim_spans();
        take()
    })
}

/// Hands out a block of whole compounds, or an over-aligned one; and whether it is all zeros.
#[cold]
fn alloc_large(size: usize, align: usize, want: Want) -> (*mut u8, bool) {
    if size > REQUEST_MAX {
        return (core::ptr::null_mut(), false);
    }
    if want == Want::Block
        && let Some(block) = large::retake(size, align)
    {
        return (pointer(Some(block)), false);
    }
    let Some(_busy) = Busy::enter() else { return (alloc_in_handler(size, align), false) };
    if start::ensure() && size > region::geometry().bytes {
        // No slice is that long: nothing that could be given back would help.
        return (core::ptr::null_mut(), false);
    }
    let block = prepare_and(|| {
        let plan = policy::current().1;
        let is_spread = plan.is_spread();
        let first = if is_spread { large::TURNS.next(plan) } else { plan.home(topo::here()) };
        let mut homes = plan.order(first);
        homes.find_map(|home| large::take(home, size, align, want, plan).ok())
    });
    (pointer(block.map(|block| block.address)), block.is_some_and(|block| block.zeroed))
}

#[cold]
fn alloc_in_handler(size: usize, align: usize) -> *mut u8 {
    // The interrupted slow path has its node open; which one it is costs a system call to ask.
    let block = region::open_slices().find_map(|(home, _)| emergency::take(home, size, align).ok());
    pointer(block)
}

fn pointer(address: Option<usize>) -> *mut u8 {
    address.map_or(core::ptr::null_mut(), core::ptr::with_exposed_provenance_mut)
}

/// Takes back the block that starts at `place`; the thread may take locks.
fn free_here(place: &Place) {
    let address = place.slice.base() + place.offset;
    if let Some(class) = class_at(place) {
        percpu::free(address, place.node, class);
        return;
    }
    if !place.slice.is_known(place.compound()) {
        misuse(Fault::NeverAllocated, address);
    }
    match place.slice.head(place.compound()).state() {
        State::LargeFirst if place.starts_compound() => large::give(place),
        State::LargeFirst | State::LargeRest => not_a_start(address),
        State::Emergency => emergency::give(place),
        // A compound of its own that is parked or went back, or runs that did.
        State::Parked | State::Unused | State::Runs => misuse(Fault::DoubleFree, address),
    }
}

fn class_at(place: &Place) -> Option<Class> {
    // Acquire: who reads the class finds its span.
    Class::from_byte(place.slice.class_byte(place.run()).load(Ordering::Acquire))
}

/// Hands out `size` bytes at 16-byte alignment; null when there is no memory.
#[must_use]
pub fn alloc(size: usize) -> *mut u8 {
    hit::alloc(size)
}

/// Hands out `size` bytes at `align`, a power of two; null when there is no memory.
#[must_use]
pub fn alloc_aligned(size: usize, align: usize) -> *mut u8 {
    debug_assert!(align.is_power_of_two());
    if checked::is_on() {
        return checked::alloc(size, align, false);
    }
    match Class::of_small(size, align).or_else(|| Class::of_layout(size, align)) {
        Some(class) => hit::alloc_class(class.index()),
        None => alloc_large(size, align, Want::Block).0,
    }
}

/// Hands out `size` zeroed bytes at `align`, a power of two; null when there is no memory.
#[must_use]
pub fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
    if checked::is_on() {
        return checked::alloc(size, align, true);
    }
    let Some(class) = Class::of_small(size, align) else { return zeroed_by_length(size, align) };
    // SAFETY: the block is fresh, of a class that holds `size` bytes, and nobody else's.
    unsafe { zeroed(hit::alloc_class(class.index()), size) }
}

/// Clears the first `size` bytes of a block, if there is one.
///
/// # Safety
/// `block` is null, or that long and nobody else's.
unsafe fn zeroed(block: *mut u8, size: usize) -> *mut u8 {
    if !block.is_null() {
        // SAFETY: the caller's promise.
        unsafe { mem::zero(block.expose_provenance(), size) };
    }
    block
}

fn zeroed_by_length(size: usize, align: usize) -> *mut u8 {
    let (block, is_zero) = match Class::of_layout(size, align) {
        Some(class) => (hit::alloc_class(class.index()), false),
        None => {
            let (block, is_zero) = alloc_large(size, align, Want::Block);
            (block, is_zero || (!block.is_null() && large::empty(block.expose_provenance())))
        }
    };
    // SAFETY: the block is fresh, at least `size` bytes long, and nobody else's.
    if is_zero { block } else { unsafe { zeroed(block, size) } }
}

/// Takes a block back.
///
/// # Safety
/// `object` is null or was handed out and is not used any more.
pub unsafe fn free(object: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { hit::free(object) };
}

/// Bytes that may be used of the block at `object`: none for a pointer that is not ours.
///
/// # Safety
/// `object` was handed out and is live, or is not ours.
pub unsafe fn usable_size(object: *const u8) -> Option<usize> {
    usable_for(object, Call::UsableSize)
}

/// [`usable_size`], asked for by realloc, which a message then names.
///
/// # Safety
/// As [`usable_size`].
pub unsafe fn usable_before_realloc(object: *const u8) -> Option<usize> {
    usable_for(object, Call::Realloc)
}

fn usable_for(object: *const u8, call: Call) -> Option<usize> {
    let place = region::locate(object.expose_provenance())?;
    Some(if checked::is_on() { checked::usable(&place, call) } else { block_bytes(&place) })
}

/// Ends the program if the block at `object` is ours and has less than the `told` bytes that a sized free
/// says.  Less is no fault: a block shrinks in place.
///
/// # Safety
/// As [`usable_size`].
pub unsafe fn check_size(object: *const u8, told: usize) {
    if let Some(usable) = usable_for(object, Call::Free)
        && usable < told
    {
        checked::wrong_size(object.expose_provenance(), usable, told);
    }
}

/// Bytes of the block that starts at `place`; aborts when none does.
fn block_bytes(place: &Place) -> usize {
    let address = place.slice.base() + place.offset;
    if let Some(class) = class_at(place) {
        return slab::object_bytes(place, class);
    }
    if !place.slice.is_known(place.compound()) {
        misuse(Fault::NeverAllocated, address);
    }
    match place.slice.head(place.compound()).state() {
        State::LargeFirst if place.starts_compound() => large::usable(place),
        State::Emergency => emergency::usable(place),
        State::Parked | State::Unused | State::Runs => misuse(Fault::DoubleFree, address),
        State::LargeFirst | State::LargeRest => not_a_start(address),
    }
}

/// Gives the block at `object`, `usable` bytes long, `size` bytes, in place or at a new address;
/// null when there is no memory, and the old block stays.
///
/// # Safety
/// `object` was handed out, is live, and `usable` is what [`usable_size`] says of it.
pub unsafe fn realloc(object: *mut u8, usable: usize, size: usize, align: usize) -> *mut u8 {
    if checked::is_on() {
        // SAFETY: the caller's promise.
        return unsafe { checked::realloc(object, usable, size, align) };
    }
    if resize(object.expose_provenance(), usable, size) {
        return object;
    }
    if size > usable && Class::of_layout(size, align).is_none() {
        // SAFETY: the caller's promise.
        return unsafe { outgrow(object, usable, size, align) };
    }
    let mut block = alloc_aligned(with_slack(usable, size), align);
    if block.is_null() {
        block = alloc_aligned(size, align);
    }
    if block.is_null() {
        // A shrink that finds no smaller block is served by the one it has.
        return if size <= usable { object } else { block };
    }
    // SAFETY: both blocks are live and apart, and at least that long; the caller gives the old one up.
    unsafe { replace(object, block, usable.min(size)) };
    block
}

/// What a block of `usable` bytes that has to move should get when it wants `size`: one that grew
/// once often grows again.  A quarter more halves the copies, three eighths leave a third; small blocks
/// are many, and more for them is a tenth of a program's memory.
fn with_slack(usable: usize, size: usize) -> usize {
    let slack = if usable < SLACK_BYTES { usable / 4 } else { usable / 8 * 3 };
    if size > usable { size.max((usable + slack).min(CLASS_BYTES_MAX)) } else { size }
}

/// True when the block at `object` is of a class and serves `size` bytes where it is: what most calls
/// of realloc ask, answered without a look at the span.  So a pointer into a block is not named here.
///
/// # Safety
/// `object` was handed out and is live, or is not ours.
pub unsafe fn serves(object: *const u8, size: usize) -> bool {
    let class = Class::from_byte(region::class_byte(object.expose_provenance()));
    class.is_some_and(|class| stays(class.shape().size as usize, size))
}

/// True when `size` bytes are no reason to leave a block of `usable`.
const fn stays(usable: usize, size: usize) -> bool {
    size <= usable && (size > usable / 2 || usable <= 64)
}

/// Gives the block at `object` a new place, as whole compounds with room to grow; as [`realloc`].
#[cold]
unsafe fn outgrow(object: *mut u8, usable: usize, size: usize, align: usize) -> *mut u8 {
    let is_checked = checked::is_on();
    let block = if is_checked {
        checked::alloc(size, align, false)
    } else {
        alloc_large(size, align, Want::Growth).0
    };
    let is_brought = !is_checked && relocate(object.expose_provenance(), block.expose_provenance());
    if !block.is_null() && !is_brought {
        // SAFETY: both blocks are live and apart, and `usable` long; the caller gives the old one up.
        unsafe { replace(object, block, usable) };
    }
    block
}

/// Copies `bytes` from an old block to a new one, and frees the old one.
///
/// # Safety
/// Both are live, apart and that long, and nobody uses the old one any more.
unsafe fn replace(old: *mut u8, new: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { mem::copy(old.expose_provenance(), new.expose_provenance(), bytes) };
    // SAFETY: as above.
    unsafe { hit::free(old) };
}

#[cold]
fn resize(address: usize, usable: usize, size: usize) -> bool {
    if checked::is_on() {
        return checked::resize(address, size);
    }
    // A large block gives back what it does not need, from an eighth on.
    let gives_back = size > CLASS_BYTES_MAX && size < usable - usable / 8;
    if stays(usable, size) && !gives_back {
        return true;
    }
    let Some(place) = region::locate(address) else { return false };
    if size <= CLASS_BYTES_MAX
        || size > REQUEST_MAX
        || !large::starts_at(&place)
        || class_at(&place).is_some()
    {
        return false;
    }
    Busy::enter().is_some_and(|_busy| prepare() && large::resize(&place, size))
}

/// Brings a large block's contents to a new, longer one, and frees the old one; false when they must be
/// copied.
#[cold]
fn relocate(from: usize, to: usize) -> bool {
    let (Some(from), Some(to)) = (region::locate(from), region::locate(to)) else { return false };
    if !large::starts_at(&from) {
        return false;
    }
    Busy::enter().is_some_and(|_busy| prepare() && large::relocate(&from, &to))
}

/// Gives what waits between CPUs back to the spans, and the spans of all nodes without an object out
/// back to their page heaps.
fn trim_spans() {
    let mut back = Homecoming::default();
    for (node, _) in region::open_slices() {
        transfer::flush(node, &mut back);
        slab::trim(node, &mut back);
    }
}
