fn main() {
    let exports = concat!(env!("CARGO_MANIFEST_DIR"), "/../exports.map");
    println!("cargo::rerun-if-changed={exports}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={exports}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--undefined-version,--undefined=malloc");
}
