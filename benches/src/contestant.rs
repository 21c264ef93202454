//! Who is measured, and how a program is started under it.

use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of homenode among the contestants.
pub const HOMENODE: &str = "homenode";

/// The name of libc's own malloc.
pub const GLIBC: &str = "glibc";

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

/// Whose malloc the C programs get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Malloc {
    /// libc's own.
    Libc,
    /// That of a library that `LD_PRELOAD` names.
    Preload(PathBuf),
    /// It has none: it is for Rust programs only.
    None,
}

/// An allocator under a name.
#[derive(Debug, Clone)]
pub struct Contestant {
    /// Name in tables and JSON.
    pub name: String,
    /// What it is in the table.
    pub role: Role,
    /// Whose malloc the C programs get.
    pub malloc: Malloc,
    /// The name of the Rust program that has it as its global allocator.
    pub churn: String,
    /// A setting of its own.
    pub setting: Option<(&'static str, &'static str)>,
}

impl Contestant {
    /// A contestant with no setting of its own.
    #[must_use]
    pub fn new(name: &str, role: Role, malloc: Malloc) -> Self {
        Self { name: name.into(), role, malloc, churn: name.into(), setting: None }
    }

    /// A contestant whose library must exist.
    ///
    /// # Errors
    /// [`Error::NoLibrary`] when it does not.
    pub fn preloaded(name: &str, role: Role, library: &Path) -> Result<Self> {
        let library =
            library.canonicalize().map_err(|_| Error::NoLibrary(library.to_path_buf()))?;
        Ok(Self::new(name, role, Malloc::Preload(library)))
    }

    /// A command that runs `program` under this contestant.
    #[must_use]
    pub fn command(&self, program: &Path, is_rust: bool) -> Command {
        let mut command = Command::new(program);
        command.env_remove("LD_PRELOAD");
        if let (false, Malloc::Preload(library)) = (is_rust, &self.malloc) {
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
