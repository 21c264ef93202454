//! The entries that tune and tell: true where homenode has the number, zero where it has not.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{c_int, c_void};

use homenode_core::Census;

use crate::errno;

/// Nothing of glibc's malloc is tunable here: every option is refused (0).
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(option: c_int, value: c_int) -> c_int {
    set_option(option, value)
}

/// [`mallopt`], not the one that another library may put before it.
pub(crate) const fn set_option(_option: c_int, _value: c_int) -> c_int {
    0
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
    pub(crate) fn take() -> Self {
        let [used, resident] =
            Census::take().bytes().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Self {
            arena: used + resident,
            uordblks: used,
            fordblks: resident,
            keepcost: resident,
            ..Self::default()
        }
    }
}

impl From<&Mallinfo2> for Mallinfo {
    fn from(info: &Mallinfo2) -> Self {
        let int = |value| c_int::try_from(value).unwrap_or(c_int::MAX);
        let [arena, used, free] = [info.arena, info.uordblks, info.fordblks].map(int);
        Self([arena, 0, 0, 0, 0, 0, 0, used, free, free])
    }
}

/// Bytes from the system, in use, and free: by whole compound pages.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> Mallinfo2 {
    Mallinfo2::take()
}

/// [`mallinfo2`] cut down to ints.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> Mallinfo {
    Mallinfo::from(&Mallinfo2::take())
}

/// Writes the numbers to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    // malloc_stats has no way to tell of a failed write.
    let _ = homenode_core::print_stats(libc::STDERR_FILENO);
}

/// Writes the numbers as XML to a stream; `options` must be 0.
///
/// # Safety
/// `stream` is an open stream of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut c_void) -> c_int {
    if options != 0 {
        errno::set(libc::EINVAL);
        return -1;
    }
    let info = Mallinfo2::take();
    // SAFETY: the caller's contract; the format matches its arguments.
    let written = unsafe {
        libc::fprintf(
            stream.cast(),
            c"<malloc version=\"homenode\">\n<total type=\"used\" size=\"%zu\"/>\n<total type=\"rest\" size=\"%zu\"/>\n\
              <system type=\"current\" size=\"%zu\"/>\n</malloc>\n"
                .as_ptr(),
            info.uordblks,
            info.fordblks,
            info.arena,
        )
    };
    if written < 0 { -1 } else { 0 }
}
