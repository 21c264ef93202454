const NAMES: [&str; 12] = [
    "malloc",
    "free",
    "cfree",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
];

fn main() {
    let exports = concat!(env!("CARGO_MANIFEST_DIR"), "/../exports.map");
    println!("cargo::rerun-if-changed={exports}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={exports}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--undefined-version,--undefined=sn_malloc");
    // The crate builds snmalloc's C functions under names of their own.
    for name in NAMES {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--defsym={name}=sn_{name}");
    }
}
