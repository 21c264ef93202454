//! Finds the program to run, and says why one cannot be served.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::image::Image;
use crate::library::Library;
use crate::privilege::{Gain, gained};
use crate::run::Failure;

/// Where programs are looked for without PATH.  glibc: execvp(3).
const PATH: &str = "/bin:/usr/bin";
/// Bytes of a script that the kernel reads for its first line.  Kernel: `BINPRM_BUF_SIZE`.
const LINE_BYTES: u64 = 256;
/// Interpreters that are scripts in turn, at most.  Kernel: `fs/exec.c` `exec_binprm`.
const SCRIPTS: usize = 5;

/// The file that `name` stands for, as execvp(3) looks for it.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match path.exists() {
            true => runnable(path),
            false => Err(Failure::NotFound { name: name.into(), in_path: false }),
        };
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| PATH.into());
    let mut failure = Failure::NotFound { name: name.into(), in_path: true };
    for folder in env::split_paths(&folders) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        let path = folder.join(name);
        if path.is_file() {
            match runnable(path) {
                Err(later) => failure = later,
                found => return found,
            }
        }
    }
    Err(failure)
}

fn runnable(path: PathBuf) -> Result<PathBuf, Failure> {
    if path.is_dir() {
        return Err(Failure::NotRunnable { path, why: "is a directory" });
    }
    match access(&path, Access::EXEC_OK) {
        Ok(()) => Ok(path),
        Err(_) => Err(Failure::NotRunnable { path, why: "is not executable" }),
    }
}

/// Why a program cannot be served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Static,
    Gains(Gain),
    Bits(u32),
    Machine { its: String, ours: String },
    NoLoader(PathBuf),
    NoInterpreter,
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => write!(
                out,
                "is linked statically, so nothing can be loaded into it: link it with libhomenode.a"
            ),
            Self::Gains(gain) => {
                let how = match gain {
                    Gain::Setuid => "is setuid",
                    Gain::Setgid => "is setgid",
                    Gain::Capabilities => "has file capabilities",
                };
                write!(out, "{how}, and the loader preloads nothing into programs that gain rights")
            }
            Self::Bits(bits) => {
                write!(out, "is a {bits}-bit program, and the library is for another")
            }
            Self::Machine { its, ours } => {
                write!(out, "is a program for {its}, and the library is for {ours}")
            }
            Self::NoLoader(path) => {
                write!(out, "needs a loader that is not there: {}", path.display())
            }
            Self::NoInterpreter => write!(out, "is not there"),
        }
    }
}

/// Fails where the library would not get into `program`, or, of a script, into its interpreter.
pub(crate) fn check(program: &Path, library: &Library) -> Result<(), Failure> {
    let mut path = program.to_path_buf();
    for _ in 0..=SCRIPTS {
        let Some(interpreter) = interpreter(&path) else { break };
        path = interpreter;
    }
    let interpreter = (path != program).then(|| path.clone());
    match why(&path, library) {
        Some(why) => Err(Failure::NotServed { program: program.into(), interpreter, why }),
        None => Ok(()),
    }
}

fn why(path: &Path, library: &Library) -> Option<Why> {
    if !path.exists() {
        return Some(Why::NoInterpreter);
    }
    // What is no ELF file, or may be run but not read, is between the kernel and the program.
    let image = Image::of(path)?;
    if image.bits != library.image.bits {
        return Some(Why::Bits(image.bits));
    }
    if image.machine != library.image.machine {
        let (its, ours) = (image.machine_name(), library.image.machine_name());
        return Some(Why::Machine { its, ours });
    }
    match image.loader {
        None if image.has_homenode => return None,
        None => return Some(Why::Static),
        Some(loader) if !loader.exists() => return Some(Why::NoLoader(loader)),
        Some(_) => {}
    }
    gained(path).map(Why::Gains)
}

/// What the first line of a script names; none where the file is no script.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(LINE_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(|byte| b" \t\0".contains(byte)).filter(|word| !word.is_empty());
    words.next().map(|word| PathBuf::from(OsStr::from_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::interpreter;
    use std::path::{Path, PathBuf};

    fn interpreter_of(text: &str) -> Option<PathBuf> {
        let name = format!("homenode-script-{}-{}", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file among temporary ones");
        let found = interpreter(&path);
        std::fs::remove_file(&path).expect("the file is ours");
        found
    }

    #[test]
    fn a_first_line_names_an_interpreter() {
        let shell = Some(Path::new("/bin/sh").into());
        assert_eq!(interpreter_of("#!/bin/sh\nexit\n"), shell);
        assert_eq!(interpreter_of("#! \t/bin/sh -e x\n"), shell);
        assert_eq!(interpreter_of("#!/bin/sh"), shell);
        for text in ["", "#", "#!", "#! \n/bin/sh", "exit 0\n#!/bin/sh\n"] {
            assert_eq!(interpreter_of(text), None, "{text:?}");
        }
        let long = format!("#!{}/bin/sh", " ".repeat(256));
        assert_eq!(interpreter_of(&long), None);
    }
}
