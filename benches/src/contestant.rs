//! Who is measured: homenode, and the peers that this machine has.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The name of homenode among the contestants.
pub const HOMENODE: &str = "homenode";

/// Debian's peers: name, and file in the multiarch folder.
const PEERS: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4"),
    ("mimalloc", "libmimalloc.so.2"),
];

/// An allocator under a name.
#[derive(Debug, Clone)]
pub struct Contestant {
    /// Name in tables and JSON.
    pub name: String,
    /// What `LD_PRELOAD` gets; none is libc's own malloc.
    pub library: Option<PathBuf>,
}

impl Contestant {
    /// A contestant whose library must exist.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] when it does not.
    pub fn preloaded(name: &str, library: &Path) -> Result<Self> {
        let library =
            library.canonicalize().map_err(|_| Error::NoLibrary(library.to_path_buf()))?;
        Ok(Self { name: name.into(), library: Some(library) })
    }

    /// libc's own malloc.
    #[must_use]
    pub fn libc() -> Self {
        Self { name: "glibc".into(), library: None }
    }
}

/// The built library: `HOMENODE_SO`, else the release build beside this program.
///
/// # Errors
/// When this program's own path is unknown.
pub fn homenode_so() -> Result<PathBuf> {
    match std::env::var_os("HOMENODE_SO") {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => Ok(target_dir()?.join("release").join("libhomenode.so")),
    }
}

/// Cargo's target folder: this program lies in `<target>/<profile>/`.
///
/// # Errors
/// When this program's own path is unknown.
pub fn target_dir() -> Result<PathBuf> {
    let program = std::env::current_exe().map_err(Error::file("/proc/self/exe"))?;
    Ok(program.ancestors().nth(2).unwrap_or(Path::new("target")).to_path_buf())
}

/// glibc and those of Debian's peers that are installed; then the files that are missing.
#[must_use]
pub fn peers() -> (Vec<Contestant>, Vec<PathBuf>) {
    let folder = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let (mut found, mut missing) = (vec![Contestant::libc()], Vec::new());
    for (name, file) in PEERS {
        let path = folder.join(file);
        match Contestant::preloaded(name, &path) {
            Ok(peer) => found.push(peer),
            Err(_) => missing.push(path),
        }
    }
    (found, missing)
}
