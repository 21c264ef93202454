//! What can go wrong in a bench, each with what to do about it.

use crate::programs::PROGRAMS;
use std::fmt;
use std::path::PathBuf;

/// The result of every fallible step of a bench.
pub type Result<T> = std::result::Result<T, Error>;

/// A step that failed; its text says what to do.
#[derive(Debug)]
pub enum Error {
    /// The library to measure is not there.
    NoLibrary(PathBuf),
    /// A tool could not be started, or said no.
    Tool {
        /// The tool's name.
        tool: &'static str,
        /// What it said.
        said: String,
    },
    /// The driver ended before its last line.
    Driver {
        /// Who was measured.
        under: String,
        /// How it ended, and what it said.
        said: String,
    },
    /// The driver printed something that is not its protocol.
    Protocol(String),
    /// The driver measured another malloc than the one asked for.
    WrongMalloc {
        /// Who was to be measured.
        wanted: String,
        /// The library that `malloc` was found in.
        found: String,
    },
    /// A program failed.
    Program {
        /// Which.
        program: &'static str,
        /// Who was measured.
        under: String,
        /// How it ended, and what it said.
        said: String,
    },
    /// No program has this name.
    NoProgram(String),
    /// None of the programs is installed.
    NothingInstalled,
    /// No row contains this text.
    NoRow(String),
    /// A file could not be read or written.
    File(PathBuf, std::io::Error),
    /// A plot could not be drawn or written.
    Plot(PathBuf, String),
    /// A hit path cannot be followed to its return.
    HitPath(String),
    /// The file of kept counts has a line that is none.
    Ledger(String),
}

impl Error {
    /// Wraps a failed access to `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File(path, cause)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary(path) => write!(
                f,
                "{} is not there: run `cargo build --release -p homenode-cabi`, \
                 or name a library in HOMENODE_SO",
                path.display()
            ),
            Self::Tool { tool, said } => {
                let said = said.trim();
                write!(f, "{tool} failed: {said} (`scripts/install-packages bench` installs it)")
            }
            Self::Driver { under, said } => {
                write!(f, "the driver ended early under {under}: {}", said.trim())
            }
            Self::Protocol(line) => write!(
                f,
                "the driver printed an unknown line; src/driver.rs and drivers/frame.h \
                 must agree: {line}"
            ),
            Self::WrongMalloc { wanted, found } => write!(
                f,
                "{wanted} was to be measured, but malloc came from {found}: does \
                 LD_PRELOAD=.. /bin/true complain?"
            ),
            Self::Program { program, under, said } => {
                write!(f, "{program} failed under {under}: {}", said.trim())
            }
            Self::NoProgram(name) => {
                let known = PROGRAMS.map(|program| program.name).join(", ");
                write!(f, "no program here is called {name:?}: there are {known}")
            }
            Self::NothingInstalled => {
                write!(f, "nothing to measure: `scripts/install-packages bench` installs programs")
            }
            Self::NoRow(part) => {
                write!(f, "no row contains {part:?}: run without --rows to see all names")
            }
            Self::File(path, cause) => write!(f, "{}: {cause}", path.display()),
            Self::Plot(path, why) => write!(f, "{}: {why}", path.display()),
            Self::HitPath(why) => write!(f, "{why}"),
            Self::Ledger(line) => {
                write!(f, "`{line}` is not a symbol and four counts: write the file with --write")
            }
        }
    }
}

impl std::error::Error for Error {}
