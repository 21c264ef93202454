//! `homenode run`: readies the environment and becomes the program.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::FAILED;
use crate::library::Library;
use crate::options::{Check, Run};
use crate::program::{self, Why};

/// Why there is no program running.
#[derive(Debug)]
pub(crate) enum Failure {
    /// None of these files is there.
    NoLibrary(Vec<PathBuf>),
    NotALibrary(PathBuf),
    NoPreload(PathBuf),
    NotFound {
        name: OsString,
        in_path: bool,
    },
    NotRunnable {
        path: PathBuf,
        why: &'static str,
    },
    /// The program, or the interpreter of a script, cannot have the library.
    NotServed {
        program: PathBuf,
        interpreter: Option<PathBuf>,
        why: Why,
    },
    Exec(PathBuf, io::Error),
}

impl Failure {
    /// The status to exit with, as shells and env(1) have it.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::NoLibrary(_) | Self::NotALibrary(_) | Self::NoPreload(_) => FAILED,
            Self::NotFound { .. } => 127,
            Self::Exec(_, error) if error.kind() == ErrorKind::NotFound => 127,
            Self::NotRunnable { .. } | Self::NotServed { .. } | Self::Exec(..) => 126,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME_IT: &str = "name the library by --library or HOMENODE_LIBRARY";
        match self {
            Self::NoLibrary(files) => {
                let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
                write!(out, "none of these is there: {}; {NAME_IT}", files.join(", "))
            }
            Self::NotALibrary(path) => write!(out, "{} is no library; {NAME_IT}", path.display()),
            Self::NoPreload(path) => {
                write!(
                    out,
                    "{}: no name with a space, a colon or a dollar can be preloaded",
                    path.display()
                )
            }
            Self::NotFound { name, in_path } => {
                let place = if *in_path { " in PATH" } else { "" };
                write!(out, "{}: there is no such program{place}", name.display())
            }
            Self::NotRunnable { path, why } => write!(out, "{} {why}", path.display()),
            Self::NotServed { program, interpreter, why } => match interpreter {
                None => write!(out, "{} {why}", program.display()),
                Some(path) => {
                    let (script, path) = (program.display(), path.display());
                    write!(out, "{script} is a script, and its interpreter {path} {why}")
                }
            },
            Self::Exec(path, error) => write!(out, "{}: {error}", path.display()),
        }
    }
}

/// Becomes the program; returns where it cannot.
pub(crate) fn run(options: &Run) -> Failure {
    match ready(options) {
        Ok((mut command, path)) => Failure::Exec(path, command.exec()),
        Err(failure) => failure,
    }
}

/// The program with its arguments and its environment.
fn ready(options: &Run) -> Result<(Command, PathBuf), Failure> {
    let library = Library::find(options.library.as_deref())?;
    let [name, arguments @ ..] = &options.program[..] else {
        return Err(Failure::NotFound { name: OsString::new(), in_path: false });
    };
    let path = program::find(name)?;
    program::check(&path, &library)?;
    let mut command = Command::new(&path);
    command.arg0(name).args(arguments).env("LD_PRELOAD", preloads(&library));
    if let Some(policy) = &options.policy {
        command.env("HOMENODE_POLICY", policy);
    }
    if options.stats {
        command.env("HOMENODE_STATS", "full");
    }
    if let Some(check) = options.check {
        let value = match check {
            Check::Off => "off",
            Check::Full => "full",
        };
        command.env("HOMENODE_CHECK", value);
    }
    Ok((command, path))
}

/// The library before what is preloaded already.
fn preloads(library: &Library) -> OsString {
    let mut list = library.path.clone().into_os_string();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
