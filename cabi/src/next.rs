//! The next allocator behind ours, found once at start, never inside free; and libstdc++'s operator new,
//! looked for when ours fails: a look that finds nothing allocates, and would start the allocator in
//! programs that need none.  Where there is no next one (a static program), a pointer that is not ours
//! ends the program.
#![allow(unsafe_code, reason = "symbols of other libraries")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// 0: not looked for yet.
const UNKNOWN: usize = 0;
/// Looked for, not there.
const NONE: usize = 1;

/// Another library's function, by address.
struct Symbol(AtomicUsize);

static MALLOC: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static CALLOC: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static POSIX_MEMALIGN: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static FREE: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static REALLOC: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static USABLE_SIZE: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static GET_NEW_HANDLER: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_ARRAY: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_ALIGNED: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_ARRAY_ALIGNED: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_NOTHROW: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_ARRAY_NOTHROW: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_ALIGNED_NOTHROW: Symbol = Symbol(AtomicUsize::new(UNKNOWN));
static NEW_ARRAY_ALIGNED_NOTHROW: Symbol = Symbol(AtomicUsize::new(UNKNOWN));

/// libc's `dlsym`; none in a static program without it.
fn dlsym() -> Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void> {
    let address = homenode_core::__weak_symbol!("dlsym");
    // SAFETY: libc defines the symbol as a function of this type; null becomes None.
    unsafe { core::mem::transmute(address) }
}

impl Symbol {
    fn find(&self, name: &CStr) {
        let found = dlsym().map_or(core::ptr::null_mut(), |dlsym| {
            // SAFETY: the name is a string; RTLD_NEXT looks behind this library.
            unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) }
        });
        let address = if found.is_null() { NONE } else { found as usize };
        self.0.store(address, Ordering::Release);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// Runs when the library is loaded, before the program's constructors.
extern "C" fn start() {
    FREE.find(c"free");
    REALLOC.find(c"realloc");
    USABLE_SIZE.find(c"malloc_usable_size");
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Looks for functions that allocate; true when all are there.
#[cold]
pub(crate) fn can_allocate() -> bool {
    MALLOC.find(c"malloc");
    CALLOC.find(c"calloc");
    POSIX_MEMALIGN.find(c"posix_memalign");
    start();
    [&MALLOC, &CALLOC, &POSIX_MEMALIGN, &FREE].iter().all(|symbol| symbol.get() > NONE)
}

/// The next malloc, after [`can_allocate`] said so.
#[cold]
pub(crate) fn malloc(size: usize) -> *mut c_void {
    // SAFETY: `can_allocate` found a function of this type.
    let malloc: unsafe extern "C" fn(usize) -> *mut c_void =
        unsafe { core::mem::transmute(MALLOC.get()) };
    // SAFETY: malloc takes any size.
    unsafe { malloc(size) }
}

/// The next calloc, as [`malloc`].
#[cold]
pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: `can_allocate` found a function of this type.
    let calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void =
        unsafe { core::mem::transmute(CALLOC.get()) };
    // SAFETY: calloc takes any size.
    unsafe { calloc(count, size) }
}

/// An aligned block of the next allocator, as [`malloc`]; `align` is a power of two of at least 8.
#[cold]
pub(crate) fn aligned(size: usize, align: usize) -> *mut c_void {
    // SAFETY: `can_allocate` found a function of this type.
    let posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> i32 =
        unsafe { core::mem::transmute(POSIX_MEMALIGN.get()) };
    let mut block = core::ptr::null_mut();
    // SAFETY: the alignment is right, and the place may be written.
    let error = unsafe { posix_memalign(&raw mut block, align, size) };
    if error == 0 { block } else { core::ptr::null_mut() }
}

/// Frees a block that is not ours.
///
/// # Safety
/// It is the next allocator's.
pub(crate) unsafe fn free(block: *mut c_void) {
    match FREE.get() {
        // The dynamic linker's own blocks, from before there was an allocator: they stay.
        UNKNOWN => {}
        NONE => homenode_core::seam::die_of_stranger(block.cast()),
        _ if homenode_core::seam::checks_fully() => {
            homenode_core::seam::die_of_stranger(block.cast())
        }
        address => {
            // SAFETY: `start` found a function of this type.
            let free: unsafe extern "C" fn(*mut c_void) = unsafe { core::mem::transmute(address) };
            // SAFETY: the caller's contract.
            unsafe { free(block) };
        }
    }
}

/// Changes the length of a block that is not ours.
///
/// # Safety
/// It is the next allocator's.
pub(crate) unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    match REALLOC.get() {
        UNKNOWN | NONE => homenode_core::seam::die_of_stranger(block.cast()),
        _ if homenode_core::seam::checks_fully() => {
            homenode_core::seam::die_of_stranger(block.cast())
        }
        address => {
            // SAFETY: `start` found a function of this type.
            let realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void =
                unsafe { core::mem::transmute(address) };
            // SAFETY: the caller's contract.
            unsafe { realloc(block, size) }
        }
    }
}

/// Usable bytes of a block that is not ours.
///
/// # Safety
/// It is the next allocator's.
pub(crate) unsafe fn usable_size(block: *mut c_void) -> usize {
    match USABLE_SIZE.get() {
        UNKNOWN | NONE => 0,
        _ if homenode_core::seam::checks_fully() => {
            homenode_core::seam::die_of_stranger(block.cast())
        }
        address => {
            // SAFETY: `start` found a function of this type.
            let usable_size: unsafe extern "C" fn(*mut c_void) -> usize =
                unsafe { core::mem::transmute(address) };
            // SAFETY: the caller's contract.
            unsafe { usable_size(block) }
        }
    }
}

/// libstdc++'s function; 0 in a program that has none so far.
fn operator(symbol: &Symbol, name: &CStr) -> usize {
    if symbol.get() == UNKNOWN || symbol.get() == NONE {
        symbol.find(name);
    }
    if symbol.get() == NONE
        && let Some(found) = late(name)
    {
        symbol.0.store(found, Ordering::Release);
    }
    match symbol.get() {
        UNKNOWN | NONE => 0,
        address => address,
    }
}

/// A function of a C++ library that the program has loaded since it started, where `RTLD_NEXT` does not look.
/// That library then stays: the address is kept.
fn late(name: &CStr) -> Option<usize> {
    let library = cxx_library();
    let dlsym = dlsym().filter(|_| !library.is_null())?;
    // By name, not as a weak symbol: linkers warn of static programs that name it.
    // SAFETY: the name is a string.
    let open = unsafe { dlsym(libc::RTLD_DEFAULT, c"dlopen".as_ptr()) };
    // SAFETY: libc defines the symbol as a function of this type; null becomes None.
    let open: Option<unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void> =
        unsafe { core::mem::transmute(open) };
    let open = open?;
    // SAFETY: the caller is code of a library that needs this one, so that its name stays.
    let handle = unsafe { open(library, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // SAFETY: the handle was just given; the name is a string.
    let found = (!handle.is_null()).then(|| unsafe { dlsym(handle, name.as_ptr()) })?;
    (!found.is_null()).then_some(found as usize)
}

/// The name of a C++ library that is loaded; null where there is none.  On little stack, unlike a look for a
/// function that is not there.
fn cxx_library() -> *const c_char {
    let mut library: *const c_char = core::ptr::null();
    let iterate = homenode_core::__weak_symbol!("dl_iterate_phdr");
    if iterate != 0 {
        // SAFETY: libc defines the symbol as a function of this type.
        let iterate: unsafe extern "C" fn(NoteLibrary, *mut c_void) -> c_int =
            unsafe { core::mem::transmute(iterate) };
        // SAFETY: the callback gets the pointer that is given here, and writes a `*const c_char` there.
        unsafe { iterate(note_cxx, (&raw mut library).cast()) };
    }
    library
}

/// What `dl_iterate_phdr` calls for each library.
type NoteLibrary = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// Notes the name of a library that C++ programs throw with.
unsafe extern "C" fn note_cxx(
    object: *mut libc::dl_phdr_info,
    _: usize,
    library: *mut c_void,
) -> c_int {
    // SAFETY: the C library gives a live record.
    let path = unsafe { (*object).dlpi_name };
    // SAFETY: as above; a name that is not null is a string.
    let text = if path.is_null() { &[] } else { unsafe { CStr::from_ptr(path) }.to_bytes() };
    let file = text.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let is_cxx =
        [b"libstdc++.so".as_slice(), b"libc++abi.so"].iter().any(|name| file.starts_with(name));
    if is_cxx {
        // SAFETY: `cxx_library` gave a place for it.
        unsafe { *library.cast::<*const c_char>() = path };
    }
    c_int::from(is_cxx)
}

/// Address of the `new_handler` that the program has set; 0 where there is none.
pub(crate) extern "C" fn new_handler() -> usize {
    let mut get = homenode_core::__weak_symbol!("_ZSt15get_new_handlerv");
    if get == 0 && !cxx_library().is_null() {
        get = operator(&GET_NEW_HANDLER, c"_ZSt15get_new_handlerv");
    }
    // SAFETY: the C++ library defines the symbol as a function of this type; 0 becomes None.
    let get: Option<extern "C" fn() -> usize> = unsafe { core::mem::transmute(get) };
    get.map_or(0, |get| get())
}

/// Address of the next `operator new(size_t)`.
pub(crate) extern "C" fn operator_new() -> usize {
    operator(&NEW, c"_Znwm")
}

/// Address of the next `operator new[](size_t)`.
pub(crate) extern "C" fn operator_new_array() -> usize {
    operator(&NEW_ARRAY, c"_Znam")
}

/// Address of the next `operator new(size_t, std::align_val_t)`.
pub(crate) extern "C" fn operator_new_aligned() -> usize {
    operator(&NEW_ALIGNED, c"_ZnwmSt11align_val_t")
}

/// Address of the next `operator new[](size_t, std::align_val_t)`.
pub(crate) extern "C" fn operator_new_array_aligned() -> usize {
    operator(&NEW_ARRAY_ALIGNED, c"_ZnamSt11align_val_t")
}

/// Address of the next `operator new(size_t, std::nothrow_t const&)`.
pub(crate) extern "C" fn operator_new_nothrow() -> usize {
    operator(&NEW_NOTHROW, c"_ZnwmRKSt9nothrow_t")
}

/// Address of the next `operator new[](size_t, std::nothrow_t const&)`.
pub(crate) extern "C" fn operator_new_array_nothrow() -> usize {
    operator(&NEW_ARRAY_NOTHROW, c"_ZnamRKSt9nothrow_t")
}

/// Address of the next `operator new(size_t, std::align_val_t, std::nothrow_t const&)`.
pub(crate) extern "C" fn operator_new_aligned_nothrow() -> usize {
    operator(&NEW_ALIGNED_NOTHROW, c"_ZnwmSt11align_val_tRKSt9nothrow_t")
}

/// Address of the next `operator new[](size_t, std::align_val_t, std::nothrow_t const&)`.
pub(crate) extern "C" fn operator_new_array_aligned_nothrow() -> usize {
    operator(&NEW_ARRAY_ALIGNED_NOTHROW, c"_ZnamSt11align_val_tRKSt9nothrow_t")
}
