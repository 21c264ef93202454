//! Whose malloc a program gets, by what the loader says of its bindings.
//!
//! A preload that is in the process need not be used: the program may be linked with an allocator
//! that stands before, or be linked statically.

use crate::contestant::{Contestant, Malloc};
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What makes the loader say on stderr where every symbol comes from, at the start. ld.so(8).
pub(super) const SETTINGS: [(&str, &str); 2] = [("LD_DEBUG", "bindings"), ("LD_BIND_NOW", "1")];

/// Where the processes of one run found their malloc.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Origin {
    mallocs: BTreeSet<PathBuf>,
    libc: Option<PathBuf>,
}

fn is_libc(library: &Path) -> bool {
    library.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.so"))
}

fn is_program(file: &Path) -> bool {
    file.file_name().is_some_and(|name| !name.to_string_lossy().contains(".so"))
}

/// Who asked, who answered, and the symbol, of a line such as
///
/// ```text
///     4711: binding file lua [0] to /lib/libc.so.6 [0]: normal symbol `malloc' [GLIBC_2.2.5]
/// ```
fn binding(line: &str) -> Option<(&Path, &Path, &str)> {
    let (_, rest) = line.split_once("binding file ")?;
    let (from, rest) = rest.split_once(" [")?;
    let (_, rest) = rest.split_once(" to ")?;
    let (to, rest) = rest.split_once(" [")?;
    let (_, rest) = rest.split_once('`')?;
    let (symbol, _) = rest.split_once('\'')?;
    Some((Path::new(from), Path::new(to), symbol))
}

impl Origin {
    /// Reads what the loader said.
    ///
    /// A program at a fixed address that takes malloc's address has a stub, which libraries are
    /// bound to, and which jumps to what the program itself is bound to. System V ABI for x86-64,
    /// section 5.2, "Function Addresses".
    pub(super) fn parse(said: &str) -> Self {
        let mut origin = Self::default();
        let mut passed_on = BTreeSet::new();
        for (from, to, symbol) in said.lines().filter_map(binding) {
            if symbol == "malloc" {
                origin.mallocs.insert(to.to_path_buf());
                if from != to && is_program(from) {
                    passed_on.insert(from);
                }
            }
            if origin.libc.is_none() && is_libc(to) {
                origin.libc = Some(to.to_path_buf());
            }
        }
        origin.mallocs.retain(|library| !passed_on.contains(library.as_path()));
        origin
    }

    /// libc, where the contestant is libc's malloc and another one is found.
    pub(super) fn libc_to_preload(&self, contestant: &Contestant) -> Option<PathBuf> {
        let linked = !self.mallocs.iter().all(|library| is_libc(library));
        (contestant.malloc == Malloc::Libc && linked).then(|| self.libc.clone()).flatten()
    }

    /// Whether every malloc is the contestant's.
    ///
    /// # Errors
    /// [`Error::WrongMalloc`] when one is not, or none is found.
    pub(super) fn check(&self, contestant: &Contestant) -> Result<()> {
        let right = |library: &PathBuf| match &contestant.malloc {
            Malloc::Preload(wanted) => library.canonicalize().is_ok_and(|found| found == *wanted),
            Malloc::Libc | Malloc::None => is_libc(library),
        };
        if !self.mallocs.is_empty() && self.mallocs.iter().all(right) {
            return Ok(());
        }
        let names: Vec<_> = self.mallocs.iter().map(|path| path.display().to_string()).collect();
        let found = if names.is_empty() { "no library".into() } else { names.join(", ") };
        Err(Error::WrongMalloc { wanted: contestant.name.clone(), found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::Role;

    const LINKED: &str = "\
        7:\tbinding file redis-server [0] to /lib/libc.so.6 [0]: normal symbol `fork' [GLIBC_2.2.5]\n\
        7:\tbinding file redis-server [0] to /lib/libjemalloc.so.2 [0]: normal symbol `malloc'\n\
        7:\tbinding file redis-server [0] to /lib/libjemalloc.so.2 [0]: normal symbol `mallctl'\n";
    const PLAIN: &str =
        "8:\tbinding file lua [0] to /lib/libc.so.6 [0]: normal symbol `malloc' [GLIBC_2.2.5]\n";

    fn plain() -> Contestant {
        Contestant::new("glibc", Role::Peer, Malloc::Libc)
    }

    #[test]
    fn an_allocator_that_is_linked_gives_way_to_libc_by_a_preload() {
        let linked = Origin::parse(LINKED);
        assert!(linked.check(&plain()).is_err());
        assert_eq!(linked.libc_to_preload(&plain()), Some("/lib/libc.so.6".into()));
        assert_eq!(Origin::parse(PLAIN).libc_to_preload(&plain()), None);
    }

    #[test]
    fn one_process_with_another_malloc_is_noticed() {
        assert!(Origin::parse(PLAIN).check(&plain()).is_ok());
        assert!(Origin::parse(&format!("{PLAIN}{LINKED}")).check(&plain()).is_err());
    }

    #[test]
    fn a_stub_of_the_program_is_not_taken_for_an_allocator() {
        let stub = "8:\tbinding file /lib/libz.so.1 [0] to lua [0]: normal symbol `malloc'\n";
        assert!(Origin::parse(&format!("{PLAIN}{stub}")).check(&plain()).is_ok());
        assert!(Origin::parse(stub).check(&plain()).is_err());
    }

    #[test]
    fn a_program_without_bindings_is_refused() {
        let error = Origin::parse("hello\n").check(&plain()).unwrap_err().to_string();
        assert!(error.contains("no library"), "{error}");
    }

    #[test]
    fn a_preload_that_is_passed_by_is_noticed() {
        let this = std::env::current_exe().unwrap();
        let homenode = Contestant::preloaded("homenode", Role::Own, &this).unwrap();
        assert!(Origin::parse(PLAIN).check(&homenode).is_err());
        let used = PLAIN.replace("/lib/libc.so.6", &this.display().to_string());
        assert!(Origin::parse(&used).check(&homenode).is_ok());
    }
}
