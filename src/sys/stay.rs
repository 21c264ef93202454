//! The module that holds this code stays loaded: the kernel reads a critical section's descriptor at
//! the next preemption, also after the last call, and jumps into code that was unloaded.
//!
//! libhomenode.so is linked `-z nodelete`.  A Rust program's plugin is not, so the crate says it of
//! itself when it is loaded.  The main program is never unloaded, and a static one has no loader.
#![allow(unsafe_code, reason = "the dynamic loader's calls, in a constructor")]

use core::ffi::{c_char, c_int, c_void};

type Dladdr = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// Runs when the module is loaded; the one place that may allocate through libc.
extern "C" fn stay() {
    let mut info = libc::Dl_info {
        dli_fname: core::ptr::null(),
        dli_fbase: core::ptr::null_mut(),
        dli_sname: core::ptr::null(),
        dli_saddr: core::ptr::null_mut(),
    };
    let (dladdr, dlopen) = (crate::__weak_symbol!("dladdr"), crate::__weak_symbol!("dlopen"));
    if dladdr == 0 || dlopen == 0 {
        return;
    }
    // SAFETY: libc defines the symbol as a function of this type.
    let dladdr: Dladdr = unsafe { core::mem::transmute(dladdr) };
    // SAFETY: as above.
    let dlopen: Dlopen = unsafe { core::mem::transmute(dlopen) };
    // SAFETY: the address is this function's own, and the struct is written.
    let found = unsafe { dladdr(stay as *const c_void, &raw mut info) } != 0;
    if !found || is_main_program(info.dli_fbase as usize) {
        return;
    }
    // SAFETY: the name is the loader's own; nothing new is loaded.
    unsafe { dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
}

/// The main program's headers stand in its first page.
fn is_main_program(base: usize) -> bool {
    const FIRST_PAGE: usize = 4096;
    // SAFETY: getauxval reads the auxiliary vector.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) };
    usize::try_from(headers).is_ok_and(|headers| (base..base + FIRST_PAGE).contains(&headers))
}

#[used]
#[unsafe(link_section = ".init_array")]
static STAY: extern "C" fn() = stay;
