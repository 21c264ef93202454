//! operator new and delete of C++17, by their mangled names.
//!
//! The hit path is malloc's.  A throwing new that finds no memory tail-jumps to libstdc++'s own,
//! with the caller's arguments and return address: it calls the `new_handler` and throws, and no
//! exception crosses a frame of ours.  That own new calls malloc, which fails again and makes it
//! throw, or succeeds after the handler freed something.  A nothrow new goes to libstdc++'s in the same
//! way, which catches.  In a static program, where ours is the only one, the loop and the catching are ours.
#![allow(unsafe_code, reason = "exported names, naked functions, and the contracts of C++")]

use core::ffi::c_void;

use crate::aligned::aligned;
use crate::malloc::{allocate, delete_here, delete_missed, free_missed};
use crate::next;

extern "C" fn new_slow(size: usize) -> *mut u8 {
    allocate(size)
}

extern "C" fn new_aligned_slow(size: usize, align: usize) -> *mut u8 {
    if align.is_power_of_two() { aligned(size, align) } else { core::ptr::null_mut() }
}

#[unsafe(naked)]
extern "C" fn new_missed(_size: usize) -> *mut c_void {
    homenode_core::__throwing_new!(new_slow, next::operator_new)
}

#[unsafe(naked)]
extern "C" fn new_array_missed(_size: usize) -> *mut c_void {
    homenode_core::__throwing_new!(new_slow, next::operator_new_array)
}

/// `operator new(size_t)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot._Znwm")]
pub extern "C" fn _Znwm(size: usize) -> *mut c_void {
    homenode_core::__alloc_hit!(new_missed)
}

/// `operator new[](size_t)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot._Znam")]
pub extern "C" fn _Znam(size: usize) -> *mut c_void {
    homenode_core::__alloc_hit!(new_array_missed)
}

/// Calls the `new_handler`, and catches what it throws: 1 if it returned, 0 otherwise.
#[unsafe(naked)]
extern "C" fn handler_returns() -> usize {
    homenode_core::__handler_returns!(next::new_handler)
}

#[unsafe(naked)]
extern "C" fn new_nothrow_missed(_size: usize) -> *mut c_void {
    homenode_core::__nothrow_new!(
        new_slow,
        next::operator_new_nothrow,
        next::new_handler,
        handler_returns
    )
}

#[unsafe(naked)]
extern "C" fn new_array_nothrow_missed(_size: usize) -> *mut c_void {
    homenode_core::__nothrow_new!(
        new_slow,
        next::operator_new_array_nothrow,
        next::new_handler,
        handler_returns
    )
}

/// `operator new(size_t, std::nothrow_t const&)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot._ZnwmRKSt9nothrow_t")]
pub extern "C" fn _ZnwmRKSt9nothrow_t(size: usize, nothrow: *const c_void) -> *mut c_void {
    homenode_core::__alloc_hit!(new_nothrow_missed)
}

/// `operator new[](size_t, std::nothrow_t const&)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.hot._ZnamRKSt9nothrow_t")]
pub extern "C" fn _ZnamRKSt9nothrow_t(size: usize, nothrow: *const c_void) -> *mut c_void {
    homenode_core::__alloc_hit!(new_array_nothrow_missed)
}

/// `operator new(size_t, std::align_val_t)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn _ZnwmSt11align_val_t(size: usize, align: usize) -> *mut c_void {
    homenode_core::__throwing_new!(new_aligned_slow, next::operator_new_aligned)
}

/// `operator new[](size_t, std::align_val_t)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn _ZnamSt11align_val_t(size: usize, align: usize) -> *mut c_void {
    homenode_core::__throwing_new!(new_aligned_slow, next::operator_new_array_aligned)
}

/// `operator new(size_t, std::align_val_t, std::nothrow_t const&)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn _ZnwmSt11align_val_tRKSt9nothrow_t(
    size: usize,
    align: usize,
    nothrow: *const c_void,
) -> *mut c_void {
    homenode_core::__nothrow_new!(
        new_aligned_slow,
        next::operator_new_aligned_nothrow,
        next::new_handler,
        handler_returns
    )
}

/// `operator new[](size_t, std::align_val_t, std::nothrow_t const&)`
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn _ZnamSt11align_val_tRKSt9nothrow_t(
    size: usize,
    align: usize,
    nothrow: *const c_void,
) -> *mut c_void {
    homenode_core::__nothrow_new!(
        new_aligned_slow,
        next::operator_new_array_aligned_nothrow,
        next::new_handler,
        handler_returns
    )
}

/// A delete: the hit path of free; a sized one expects the class of its size.
macro_rules! deletes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $hit:ident!($($part:tt),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// C++'s contract of delete.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[unsafe(link_section = concat!(".text.hot.", stringify!($name)))]
        pub unsafe extern "C" fn $name(block: *mut c_void, $($argument: $type),*) {
            homenode_core::$hit!($($part),*)
        }
    )*};
}

deletes! {
    /// `operator delete(void*)`
    _ZdlPv() __free_hit!(free_missed);
    /// `operator delete[](void*)`
    _ZdaPv() __free_hit!(free_missed);
    /// `operator delete(void*, size_t)`
    _ZdlPvm(size: usize) __free_sized_hit!(second, delete_here, delete_missed);
    /// `operator delete[](void*, size_t)`
    _ZdaPvm(size: usize) __free_sized_hit!(second, delete_here, delete_missed);
    /// `operator delete(void*, std::nothrow_t const&)`
    _ZdlPvRKSt9nothrow_t(nothrow: *const c_void) __free_hit!(free_missed);
    /// `operator delete[](void*, std::nothrow_t const&)`
    _ZdaPvRKSt9nothrow_t(nothrow: *const c_void) __free_hit!(free_missed);
    /// `operator delete(void*, std::align_val_t)`
    _ZdlPvSt11align_val_t(align: usize) __free_hit!(free_missed);
    /// `operator delete[](void*, std::align_val_t)`
    _ZdaPvSt11align_val_t(align: usize) __free_hit!(free_missed);
    /// `operator delete(void*, size_t, std::align_val_t)`; the size of a type is a multiple of its
    /// alignment, so it has the same class at any other.
    _ZdlPvmSt11align_val_t(size: usize, align: usize) __free_sized_hit!(second, delete_here, delete_missed);
    /// `operator delete[](void*, size_t, std::align_val_t)`
    _ZdaPvmSt11align_val_t(size: usize, align: usize) __free_sized_hit!(second, delete_here, delete_missed);
    /// `operator delete(void*, std::align_val_t, std::nothrow_t const&)`
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: usize, nothrow: *const c_void) __free_hit!(free_missed);
    /// `operator delete[](void*, std::align_val_t, std::nothrow_t const&)`
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: usize, nothrow: *const c_void) __free_hit!(free_missed);
}
