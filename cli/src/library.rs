//! Finds libhomenode.so.0: where it was told, or beside this command.
//!
//! | the command is | the library is |
//! |---|---|
//! | `PREFIX/bin/homenode` | `PREFIX/lib/libhomenode.so.0`, or in `lib64` or Debian's `lib/x86_64-linux-gnu` |
//! | `target/release/homenode` | beside it |

use std::env;
use std::path::{Path, PathBuf};

use crate::image::Image;
use crate::run::Failure;

/// The name that linked programs look for, too: another number is another ABI.
const NAME: &str = "libhomenode.so.0";
/// Folders of libraries below a prefix; the last is Debian's for this processor.
#[cfg(target_arch = "x86_64")]
const FOLDERS: [&str; 3] = ["lib", "lib64", "lib/x86_64-linux-gnu"];
#[cfg(target_arch = "aarch64")]
const FOLDERS: [&str; 3] = ["lib", "lib64", "lib/aarch64-linux-gnu"];

/// A library that can be preloaded.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    pub(crate) image: Image,
}

impl Library {
    /// Looks at `told`, or else where the table says.
    pub(crate) fn find(told: Option<&Path>) -> Result<Self, Failure> {
        let path = match told {
            Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.into()),
            None => beside()?,
        };
        // The loader would complain and go on without it.
        let image = Image::of(&path).ok_or_else(|| Failure::NotALibrary(path.clone()))?;
        // ld.so(8), LD_PRELOAD: the list's separators, and its variables.
        if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" :$".contains(byte)) {
            return Err(Failure::NoPreload(path));
        }
        Ok(Self { path, image })
    }
}

fn beside() -> Result<PathBuf, Failure> {
    let command = env::current_exe().unwrap_or_default();
    let folder = command.parent().unwrap_or(Path::new("/"));
    let prefix = folder.parent().unwrap_or(folder);
    let below = FOLDERS.map(|name| prefix.join(name).join(NAME));
    let files: Vec<_> = [folder.join(NAME)].into_iter().chain(below).collect();
    let found = files.iter().find(|path| path.is_file()).cloned();
    found.ok_or(Failure::NoLibrary(files))
}
