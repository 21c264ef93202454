//! Second names of malloc and its family: glibc's own, and one of an older glibc.  Each is the same path
//! as the first name.
//!
//! Interposers reach for them to get past themselves, and static programs must find all of them here: one
//! that is missing would bring libc's malloc along, and then each first name is defined twice.
#![allow(unsafe_code, reason = "exported names, and the contracts of C")]

use core::ffi::{c_int, c_void};

use crate::aligned::{memalign_missed, page_aligned, posix_memalign_missed, whole_pages};
use crate::malloc::{calloc_missed, free_missed, malloc_missed, resize, resize_array};
use crate::tune::{Mallinfo, Mallinfo2};

/// A hit path under its second name.
macro_rules! hits {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $hit:ident!($($part:tt),*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, without the underscores")]
        ///
        /// # Safety
        /// C's contract of that name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            homenode_core::$hit!($($part),*)
        }
    )*};
}

hits! {
    __libc_malloc(size: usize) -> *mut c_void, __alloc_hit!(malloc_missed);
    __libc_free(block: *mut c_void), __free_hit!(free_missed);
    __libc_calloc(count: usize, size: usize) -> *mut c_void, __zeroed_hit!(calloc_missed);
    __libc_memalign(align: usize, size: usize) -> *mut c_void,
        __aligned_alloc_hit!(memalign_missed);
    __posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int,
        __posix_memalign_hit!(posix_memalign_missed);
}

/// realloc
///
/// # Safety
/// C's contract of realloc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { resize(block, size) }
}

/// reallocarray
///
/// # Safety
/// C's contract of realloc.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's contract.
    unsafe { resize_array(block, count, size) }
}

/// valloc
#[unsafe(no_mangle)]
pub extern "C" fn __libc_valloc(size: usize) -> *mut c_void {
    page_aligned(size)
}

/// pvalloc
#[unsafe(no_mangle)]
pub extern "C" fn __libc_pvalloc(size: usize) -> *mut c_void {
    whole_pages(size)
}

/// mallopt
#[unsafe(no_mangle)]
pub extern "C" fn __libc_mallopt(option: c_int, value: c_int) -> c_int {
    crate::tune::set_option(option, value)
}

/// mallinfo
#[unsafe(no_mangle)]
pub extern "C" fn __libc_mallinfo() -> Mallinfo {
    Mallinfo::from(&Mallinfo2::take())
}
