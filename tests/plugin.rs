//! A Rust plugin that brings its own homenode is loaded, used by threads and closed.
#![allow(unsafe_code, reason = "the dynamic loader's calls")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(handle: *mut c_void) -> c_int;
}

const RTLD_NOW: c_int = 2;

fn plugin() -> CString {
    let mut path: PathBuf = std::env::current_exe().expect("this test has a path");
    path.pop();
    path.pop();
    // A profile's folder has its name, but for one.
    let folder = path.file_name().and_then(|name| name.to_str()).expect("target/<profile>");
    let profile = if folder == "debug" { "dev" } else { folder }.to_owned();
    path.push("examples");
    path.push("libplugin.so");
    // `cargo test` builds examples, `cargo test --test plugin` does not.
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--profile", &profile, "--example", "plugin"])
        .status();
    assert!(
        built.is_ok_and(|status| status.success()) && path.exists(),
        "{} could not be built",
        path.display()
    );
    CString::new(path.to_str().expect("a path of text")).expect("a path without null bytes")
}

#[test]
fn a_closed_plugin_leaves_its_threads_alive() {
    let path = plugin();
    for _ in 0..20 {
        // SAFETY: the name is a string.
        let handle = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
        assert!(!handle.is_null());
        // SAFETY: the handle is open, and the name is a string.
        let churn = unsafe { dlsym(handle, c"plugin_churn".as_ptr()) };
        assert!(!churn.is_null());
        // SAFETY: the plugin exports it with this type.
        let churn: extern "C" fn() -> usize = unsafe { std::mem::transmute(churn) };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(move || churn())).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("no panic") == 1_999_000));
        assert_eq!(churn(), 1_999_000);
        // SAFETY: no code of the plugin runs.
        unsafe { dlclose(handle) };
        // Preemptions now read the descriptors of this thread's last sections.
        (0..50).for_each(|_| std::thread::yield_now());
    }
}
