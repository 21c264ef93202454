//! Linker settings of libhomenode.so: never unloaded (the kernel keeps addresses of its critical
//! sections), bound at load (no lazy binding inside malloc), and the name that linked programs look for,
//! whose number changes when they would no longer run.
fn main() {
    for arg in ["-Wl,-z,nodelete", "-Wl,-z,now", "-Wl,-soname,libhomenode.so.0"] {
        println!("cargo::rustc-cdylib-link-arg={arg}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
