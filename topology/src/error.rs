//! Why a question has no answer, and what could have been asked instead.

use std::fmt;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// hwloc cannot read the machine, or the text that describes one.
    Unreadable {
        /// What was to be read.
        what: &'static str,
        /// hwloc's word.
        why: String,
    },
    /// No device has this name or this address.
    NoDevice {
        /// The name asked for.
        asked: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// No memory is of this tier.
    NoTier {
        /// The tier asked for.
        asked: String,
        /// The tiers that there are.
        known: Vec<String>,
    },
}

/// "there are a, b", or that there is nothing.
fn list(known: &[String]) -> String {
    match known {
        [] => "hwloc sees none at all".into(),
        [only] => format!("there is {only}"),
        _ => format!("there are {}", known.join(", ")),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { what, why } => write!(out, "hwloc cannot read {what}: {why}"),
            Self::NoDevice { asked, known } => {
                write!(out, "there is no device {asked:?}: {}", list(known))
            }
            Self::NoTier { asked, known } => {
                write!(out, "there is no memory of tier {asked:?}: {}", list(known))
            }
        }
    }
}

impl std::error::Error for Error {}
