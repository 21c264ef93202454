//! The entries that tune and tell.  What each number of glibc's is here:
//!
//! | `mallinfo2` | here |
//! |---|---|
//! | `arena` | bytes of the compounds that blocks of up to 1 MiB are cut from, and of free ones that keep their pages |
//! | `ordblks` | free objects in spans, ranges of free runs, and free compounds that keep their pages |
//! | `smblks`, `fsmblks` | free objects in caches, of CPUs and between them; their bytes |
//! | `hblks`, `hblkhd` | blocks over 1 MiB that the program holds; their usable bytes |
//! | `usmblks` | 0, as in glibc |
//! | `uordblks` | usable bytes of the blocks of up to 1 MiB that the program holds |
//! | `fordblks` | `arena` less `uordblks`: the caches' bytes are in it, and what is cut off between blocks |
//! | `keepcost` | bytes of free compounds that keep their pages: what `malloc_trim` gives back at least |
//!
//! `uordblks` is exact while no other thread allocates or frees ([`Usage`] says what else may be counted in
//! it).  A block's header costs nothing here, so that it is the sum of `malloc_usable_size`.
//! `malloc_info` lists, by size, the free blocks that `ordblks` and `smblks` count: together less than `fordblks` by what
//! is cut off between blocks.  `mallinfo` is the same in ints, each at most `INT_MAX`, where glibc's wrap around.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{c_char, c_int, c_void};

use homenode_core::{FreeBlocks, Usage};

unsafe extern "C" {
    /// dprintf(3), which keeps what it formats on the stack.
    fn dprintf(fd: c_int, format: *const c_char, ...) -> c_int;
}

/// Largest `M_MXFAST`, in bytes: glibc 2.36, `MAX_FAST_SIZE`.
const MXFAST_MAX: c_int = 160;

/// glibc's answers, 1 also for options that it does not know, since programs end where they get 0.  With an effect
/// here:
///
/// | option | here |
/// |---|---|
/// | `M_TRIM_THRESHOLD` | bytes of free compounds that each node keeps resident; below zero: all |
/// | `M_PERTURB` | refused (0) unless it is 0: a hit fills no memory, and what asks for it would be seen to be missing |
/// | others | advice about arenas and the heap's end, which are not here: taken, without effect |
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(option: c_int, value: c_int) -> c_int {
    set_option(option, value)
}

/// [`mallopt`], not the one that another library may put before it.
pub(crate) fn set_option(option: c_int, value: c_int) -> c_int {
    let is_taken = match option {
        libc::M_MXFAST => (0..=MXFAST_MAX).contains(&value),
        libc::M_PERTURB => value == 0,
        libc::M_TRIM_THRESHOLD => {
            homenode_core::seam::keep_resident(usize::try_from(value).unwrap_or(usize::MAX));
            true
        }
        _ => true,
    };
    c_int::from(is_taken)
}

/// Drains all caches and gives free pages back, whatever `pad` asks to keep; 1 if pages went back.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(homenode_core::trim() > 0)
}

/// glibc's struct of sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallinfo2 {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

/// The older struct, of ints.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Mallinfo([c_int; 10]);

impl Mallinfo2 {
    /// The numbers of now.
    pub(crate) fn take() -> Self {
        Self::from(&Usage::take())
    }

    /// Free blocks that are in no cache, and their bytes.
    const fn rest(&self) -> [usize; 2] {
        [self.ordblks, self.fordblks - self.fsmblks]
    }
}

impl From<&Usage> for Mallinfo2 {
    fn from(usage: &Usage) -> Self {
        let size = |value| usize::try_from(value).unwrap_or(usize::MAX);
        let arena = usage.cut_bytes + usage.resident_bytes();
        // A span that went back meanwhile may still have been counted.
        let held = usage.held_bytes.min(arena);
        Self {
            arena: size(arena),
            ordblks: size(usage.free + usage.resident),
            smblks: size(usage.cached),
            hblks: size(usage.large),
            hblkhd: size(usage.large_bytes),
            usmblks: 0,
            fsmblks: size(usage.cached_bytes.min(arena - held)),
            uordblks: size(held),
            fordblks: size(arena - held),
            keepcost: size(usage.resident_bytes()),
        }
    }
}

impl From<&Mallinfo2> for Mallinfo {
    fn from(info: &Mallinfo2) -> Self {
        let fields = [
            info.arena,
            info.ordblks,
            info.smblks,
            info.hblks,
            info.hblkhd,
            info.usmblks,
            info.fsmblks,
            info.uordblks,
            info.fordblks,
            info.keepcost,
        ];
        Self(fields.map(|value| c_int::try_from(value).unwrap_or(c_int::MAX)))
    }
}

/// What the memory is used for: see the table above.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> Mallinfo2 {
    Mallinfo2::take()
}

/// [`mallinfo2`] in ints.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> Mallinfo {
    Mallinfo::from(&Mallinfo2::take())
}

/// Writes the numbers to standard error: a node each and in all, as glibc does; then homenode's own.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    // malloc_stats has no way to tell of a failed write.
    for node in 0..Usage::nodes() {
        let Some(usage) = Usage::of_node(node) else { continue };
        let info = Mallinfo2::from(&usage);
        // SAFETY: the format matches its arguments.
        unsafe {
            dprintf(
                libc::STDERR_FILENO,
                c"Arena %zu:\nsystem bytes     = %10zu\nin use bytes     = %10zu\n".as_ptr(),
                node,
                info.arena,
                info.uordblks,
            )
        };
    }
    let info = Mallinfo2::take();
    // SAFETY: the format matches its arguments.
    unsafe {
        dprintf(
            libc::STDERR_FILENO,
            c"Total (incl. mmap):\nsystem bytes     = %10zu\nin use bytes     = %10zu\n\
              mmap regions     = %10zu\nmmap bytes       = %10zu\n"
                .as_ptr(),
            info.arena + info.hblkhd,
            info.uordblks + info.hblkhd,
            info.hblks,
            info.hblkhd,
        )
    };
    let _ = homenode_core::print_stats(libc::STDERR_FILENO);
}

/// Writes the numbers as XML to a stream, in glibc's form: a heap is a node.  0, or `EINVAL` for options
/// other than 0, or -1 when the stream takes no more.
///
/// # Safety
/// `stream` is an open stream of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut c_void) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let stream = stream.cast();
    // SAFETY: the caller's contract, here and below; formats match their arguments.
    let mut last = unsafe { libc::fprintf(stream, c"<malloc version=\"1\">\n".as_ptr()) };
    let mut sum = Usage::default();
    for node in 0..Usage::nodes() {
        // SAFETY: as above.
        if let Some((usage, written)) = unsafe { write_heap(stream, node) } {
            sum = sum + usage;
            last = last.min(written);
        }
    }
    // SAFETY: as above.
    last = last.min(unsafe { write_totals(stream, &Mallinfo2::from(&sum)) });
    // SAFETY: as above.
    last = last.min(unsafe { libc::fprintf(stream, c"</malloc>\n".as_ptr()) });
    if last < 0 { -1 } else { 0 }
}

/// Writes a node's numbers.  None where it has none; negative: the stream takes no more.
///
/// # Safety
/// `stream` is an open stream of C.
unsafe fn write_heap(stream: *mut libc::FILE, node: usize) -> Option<(Usage, c_int)> {
    if !Usage::has_node(node) {
        return None;
    }
    // SAFETY: the caller's contract, here and below; formats match their arguments.
    unsafe { libc::fprintf(stream, c"<heap nr=\"%zu\">\n<sizes>\n".as_ptr(), node) };
    let usage = Usage::of_node_by_size(node, |blocks| {
        let FreeBlocks { from, to, bytes, count } = blocks;
        // SAFETY: as above.
        unsafe {
            libc::fprintf(
                stream,
                c"  <size from=\"%lu\" to=\"%lu\" total=\"%lu\" count=\"%lu\"/>\n".as_ptr(),
                from,
                to,
                bytes,
                count,
            )
        };
    })?;
    // SAFETY: as above.
    unsafe { libc::fprintf(stream, c"</sizes>\n".as_ptr()) };
    // SAFETY: as above.
    unsafe { write_totals(stream, &Mallinfo2::from(&usage)) };
    // SAFETY: as above.
    Some((usage, unsafe { libc::fprintf(stream, c"</heap>\n".as_ptr()) }))
}

/// The elements that a heap and the whole have.  Negative: the stream takes no more.
///
/// # Safety
/// `stream` is an open stream of C.
unsafe fn write_totals(stream: *mut libc::FILE, info: &Mallinfo2) -> c_int {
    let [count, bytes] = info.rest();
    // SAFETY: the caller's contract; the format matches its arguments.
    unsafe {
        libc::fprintf(
            stream,
            c"<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n\
              <total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n\
              <total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n\
              <system type=\"current\" size=\"%zu\"/>\n"
                .as_ptr(),
            info.smblks,
            info.fsmblks,
            count,
            bytes,
            info.hblks,
            info.hblkhd,
            info.arena,
        )
    }
}
