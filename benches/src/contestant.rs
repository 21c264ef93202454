//! Who is measured: homenode, and the peers that this machine has.

use crate::error::{Error, Result};
use crate::rows::Program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of homenode among the contestants.
pub const HOMENODE: &str = "homenode";

/// The name of libc's own malloc.
pub const GLIBC: &str = "glibc";

/// Debian's peers: name, and file in the multiarch folder.
const DEBIAN: [(&str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4"),
    ("mimalloc2", "libmimalloc.so.2"),
];

/// What a contestant is in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that is judged.
    Own,
    /// homenode in another setting: shown beside, judged by the same bars.
    Variant,
    /// An allocator to beat.
    Peer,
    /// No allocator: shown, never the best.
    Reference,
}

/// An allocator under a name.
#[derive(Debug, Clone)]
pub struct Contestant {
    /// Name in tables and JSON.
    pub name: String,
    /// What it is in the table.
    pub role: Role,
    /// What `LD_PRELOAD` gets; none is libc's own malloc.
    pub library: Option<PathBuf>,
    /// A setting of its own.
    pub setting: Option<(&'static str, &'static str)>,
}

impl Contestant {
    /// A contestant whose library must exist.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] when it does not.
    pub fn preloaded(name: &str, role: Role, library: &Path) -> Result<Self> {
        let library =
            library.canonicalize().map_err(|_| Error::NoLibrary(library.to_path_buf()))?;
        Ok(Self { name: name.into(), role, library: Some(library), setting: None })
    }

    /// libc's own malloc.
    #[must_use]
    pub fn libc() -> Self {
        Self { name: GLIBC.into(), role: Role::Peer, library: None, setting: None }
    }

    /// Whether it has a place in the rows of `program`.
    #[must_use]
    pub fn takes_part_in(&self, program: Program) -> bool {
        self.role != Role::Reference || program == Program::Startup
    }

    /// A command that runs `program` under this contestant.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_remove("LD_PRELOAD");
        if let Some(library) = &self.library {
            command.env("LD_PRELOAD", library);
        }
        if let Some((name, value)) = self.setting {
            command.env(name, value);
        }
        command
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

/// homenode on this machine's nodes, then on two invented ones.
///
/// # Errors
/// [`Error::NoLibrary`] when it is not built.
pub fn homenodes() -> Result<Vec<Contestant>> {
    let own = Contestant::preloaded(HOMENODE, Role::Own, &homenode_so()?)?;
    let setting = Some(("HOMENODE_FAKE_NODES", "2"));
    let fake = Contestant {
        name: format!("{HOMENODE} 2 nodes"),
        role: Role::Variant,
        setting,
        ..own.clone()
    };
    Ok(vec![own, fake])
}

/// glibc and those of Debian's peers that are installed; then the files that are missing.
#[must_use]
pub fn peers() -> (Vec<Contestant>, Vec<PathBuf>) {
    let folder = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let (mut found, mut missing) = (vec![Contestant::libc()], Vec::new());
    for (name, file) in DEBIAN {
        let path = folder.join(file);
        match Contestant::preloaded(name, Role::Peer, &path) {
            Ok(peer) => found.push(peer),
            Err(_) => missing.push(path),
        }
    }
    (found, missing)
}
