//! The peers: built from `peers/` and `churn/` by cargo, or Debian's, or skipped by name.
//!
//! Each peer is a crate outside the workspace, since two of one family would clash in one build.
//! All are built into `peers` in cargo's target folder.

use crate::contestant::{Contestant, GLIBC, HOMENODE, Malloc, Role, target_dir};
use crate::error::{Error, Result};
use crate::rows::Program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where an allocator comes from.
struct Peer {
    name: &'static str,
    /// It has a crate in `peers/`, a preload.
    preload: bool,
    /// It has a feature of `churn/`.
    churn: bool,
    /// Its file in the multiarch folder, taken where the crate's is not built.
    debian: Option<&'static str>,
}

const PEERS: [Peer; 8] = [
    Peer { name: GLIBC, preload: false, churn: true, debian: None },
    Peer {
        name: "tcmalloc",
        preload: false,
        churn: false,
        debian: Some("libtcmalloc_minimal.so.4"),
    },
    Peer { name: "jemalloc", preload: true, churn: true, debian: Some("libjemalloc.so.2") },
    Peer { name: "mimalloc2", preload: true, churn: true, debian: Some("libmimalloc.so.2") },
    Peer { name: "mimalloc3", preload: true, churn: true, debian: None },
    Peer { name: "snmalloc", preload: true, churn: true, debian: None },
    Peer { name: "rpmalloc", preload: true, churn: true, debian: None },
    Peer { name: "numalloc", preload: false, churn: true, debian: None },
];

/// The two ways to build `churn`, and cargo's names of the profiles.
const CHURNS: [(Program, &str); 2] = [(Program::Rust, "release"), (Program::RustThin, "thin")];

/// The folder of everything that is built here.
fn built() -> Result<PathBuf> {
    Ok(target_dir()?.join("peers"))
}

/// The program that measures Rust's rows under the allocator `name`.
///
/// # Errors
/// When this program's own path is unknown.
pub fn churn(name: &str, program: Program) -> Result<PathBuf> {
    Ok(built()?.join("churn").join(format!("{name}-{}", program.name())))
}

fn library(name: &str) -> Result<PathBuf> {
    Ok(built()?.join("release").join(format!("lib{name}.so")))
}

/// Runs `cargo build` in a folder of this package, which may have settings of its own for cargo.
fn cargo_build(folder: &str, options: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let failed = |said: String| Error::Tool { tool: "cargo", said };
    let output = Command::new(cargo)
        .args(["build", "--locked", "--target-dir"])
        .arg(built()?)
        .args(options)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(first_error(&String::from_utf8_lossy(&output.stderr))))
}

/// The line of cargo's output that says what went wrong.
fn first_error(said: &str) -> String {
    let error = said.lines().find(|line| line.starts_with("error"));
    error.or(said.lines().last()).unwrap_or("without a word").into()
}

fn build_preload(name: &str) -> Result<()> {
    cargo_build(&format!("peers/{name}"), &["--release"])
}

/// Builds `churn` under the allocator `name`, in both ways.
///
/// # Errors
/// When cargo fails, or the result cannot be copied.
pub fn build_churn(name: &str) -> Result<()> {
    for (program, profile) in CHURNS {
        cargo_build("churn", &["--profile", profile, "--features", name])?;
        let (from, to) = (built()?.join(profile).join("churn"), churn(name, program)?);
        let folder = to.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        std::fs::copy(&from, &to).map_err(Error::file(&from))?;
    }
    Ok(())
}

/// Builds `churn` under the allocator `name` again where its source has changed; does nothing where
/// it was never built.
///
/// # Errors
/// When cargo fails.
pub fn renew_churn(name: &str) -> Result<()> {
    if churn(name, Program::Rust)?.exists() { build_churn(name) } else { Ok(()) }
}

/// Builds all that can be built; a line for each that cannot.
#[must_use]
pub fn build() -> Vec<String> {
    let mut skipped = Vec::new();
    let mut done = |what: String, result: Result<()>| match result {
        Ok(()) => eprintln!("built: {what}"),
        Err(error) => skipped.push(format!("{what}: {error}")),
    };
    for peer in PEERS.iter().filter(|peer| peer.preload) {
        done(format!("{} as a preload", peer.name), build_preload(peer.name));
    }
    let churns = PEERS.iter().filter(|peer| peer.churn).map(|peer| peer.name);
    for name in std::iter::once(HOMENODE).chain(churns) {
        done(format!("{name} as a global allocator"), build_churn(name));
    }
    skipped
}

impl Peer {
    fn malloc(&self) -> Result<Malloc> {
        if self.name == GLIBC {
            return Ok(Malloc::Libc);
        }
        if self.preload
            && let Ok(path) = library(self.name)?.canonicalize()
        {
            return Ok(Malloc::Preload(path));
        }
        let folder = PathBuf::from(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let debian = self.debian.and_then(|file| folder.join(file).canonicalize().ok());
        Ok(debian.map_or(Malloc::None, Malloc::Preload))
    }

    fn is_there(&self, contestant: &Contestant) -> Result<bool> {
        let churn = self.churn && churn(self.name, Program::Rust)?.exists();
        Ok(churn || contestant.malloc != Malloc::None)
    }
}

/// The peers that are there; then the names of those that are not.
///
/// # Errors
/// When this program's own path is unknown.
pub fn found() -> Result<(Vec<Contestant>, Vec<&'static str>)> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for peer in &PEERS {
        let contestant = Contestant::new(peer.name, Role::Peer, peer.malloc()?);
        if peer.is_there(&contestant)? {
            found.push(contestant);
        } else {
            missing.push(peer.name);
        }
    }
    Ok((found, missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preload_has_a_crate_and_every_churn_a_feature() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let features = std::fs::read_to_string(folder.join("churn/Cargo.toml")).unwrap();
        for peer in PEERS {
            let manifest = folder.join("peers").join(peer.name).join("Cargo.toml");
            assert_eq!(manifest.exists(), peer.preload, "{}", peer.name);
            let feature = format!("\n{} = [", peer.name);
            assert_eq!(features.contains(&feature), peer.churn, "{}", peer.name);
        }
    }

    #[test]
    fn the_reason_is_found_in_much_output() {
        assert_eq!(first_error("Compiling x\nerror: no cmake\nnote: y\n"), "error: no cmake");
        assert_eq!(first_error("killed"), "killed");
    }
}
