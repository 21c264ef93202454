//! Linker settings of libhomenode.so: never unloaded (the kernel keeps addresses of its critical
//! sections), bound at load (no lazy binding inside malloc), and a name to link against.
fn main() {
    for arg in ["-Wl,-z,nodelete", "-Wl,-z,now", "-Wl,-soname,libhomenode.so"] {
        println!("cargo::rustc-cdylib-link-arg={arg}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
