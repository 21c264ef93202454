//! Real programs, untouched: what each costs in CPU time and resident memory under every contestant.
//!
//! | module | what it holds |
//! |---|---|
//! | here | the programs, their inputs, and which of them are installed |
//! | [`process`] | the kernel's account of one run |
//! | [`server`] | one run of redis under its load |
//! | [`origin`] | whose malloc a program gets |
//! | [`rounds`] | the interleaved rounds |
//! | [`report`] | ratios, intervals, bars |

pub mod origin;
pub mod process;
pub mod report;
pub mod rounds;
pub mod server;

use crate::contestant::{Contestant, target_dir};
use crate::error::{Error, Result};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program and its work, 0.3 to 1.5 s of CPU time.
#[derive(Debug)]
pub struct Program {
    /// Its name in tables and for `--only`.
    pub name: &'static str,
    /// Its commands: the first one that is installed is started.
    commands: &'static [&'static str],
    /// The work, by arguments; the working folder holds the input.
    arguments: &'static [&'static str],
    /// Arguments that start all that it consists of, and do little.
    probe: &'static [&'static str],
    /// The input's name and text.
    input: Option<(&'static str, &'static str)>,
    /// The command that makes the load, for a server.
    client: Option<&'static str>,
}

/// All programs, in the order in which they run.
pub const PROGRAMS: [Program; 5] = [
    Program {
        name: "python",
        commands: &["python3"],
        arguments: &["heap.py"],
        probe: &["--version"],
        input: Some(("heap.py", include_str!("../../programs/heap.py"))),
        client: None,
    },
    Program {
        name: "lua",
        commands: &["lua5.4", "lua5.3"],
        arguments: &["tables.lua"],
        probe: &["-v"],
        input: Some(("tables.lua", include_str!("../../programs/tables.lua"))),
        client: None,
    },
    Program {
        name: "g++",
        commands: &["g++"],
        arguments: &["-std=c++17", "-O1", "-c", "headers.cc", "-o", "headers.o"],
        probe: &["-S", "-x", "c++", "/dev/null", "-o", "/dev/null"],
        input: Some(("headers.cc", include_str!("../../programs/headers.cc"))),
        client: None,
    },
    Program {
        name: "sqlite",
        commands: &["sqlite3"],
        arguments: &["-batch", ":memory:", ".read query.sql"],
        probe: &["--version"],
        input: Some(("query.sql", include_str!("../../programs/query.sql"))),
        client: None,
    },
    Program {
        name: "redis",
        commands: &["redis-server"],
        arguments: &server::OPTIONS,
        probe: &["--version"],
        input: None,
        client: Some("redis-benchmark"),
    },
];

/// Every object of python by malloc, none by its own pools; its dictionaries in the same order on
/// every run.
const SETTINGS: [(&str, &str); 3] =
    [("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0"), ("LC_ALL", "C.UTF-8")];

/// A program that is there to be run.
#[derive(Debug)]
pub struct Installed {
    /// Which.
    pub program: &'static Program,
    file: PathBuf,
    client: Option<PathBuf>,
    folder: PathBuf,
}

/// The programs called `only` (none: all) that are installed, their inputs written; then the
/// names of those that are not.
///
/// # Errors
/// [`Error::NoProgram`] for a name that is none; when an input cannot be written.
pub fn installed(only: &[String]) -> Result<(Vec<Installed>, Vec<&'static str>)> {
    let known = |name: &&String| PROGRAMS.iter().any(|program| program.name == name.as_str());
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        return Err(Error::NoProgram(unknown.clone()));
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    let wanted = |program: &&Program| only.is_empty() || only.iter().any(|n| n == program.name);
    for program in PROGRAMS.iter().filter(wanted) {
        match Installed::find(program)? {
            Some(installed) => found.push(installed),
            None => missing.push(program.name),
        }
    }
    Ok((found, missing))
}

/// A command's file: the distribution's own before a wrapper's that stands earlier on the path.
fn find(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(PathBuf::from("/usr/bin")).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(command)).find(|file| file.is_file())
}

impl Installed {
    fn find(program: &'static Program) -> Result<Option<Self>> {
        let Some(file) = program.commands.iter().find_map(|command| find(command)) else {
            return Ok(None);
        };
        let client = program.client.and_then(find);
        if client.is_none() && program.client.is_some() {
            return Ok(None);
        }
        let folder = target_dir()?.join("bench-programs");
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        if let Some((name, text)) = program.input {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(Error::file(path))?;
        }
        Ok(Some(Self { program, file, client, folder }))
    }

    fn command(&self, contestant: &Contestant) -> Command {
        let mut command = contestant.command(&self.file, false);
        command.envs(SETTINGS).current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// One run of its work under `contestant`.
    ///
    /// # Errors
    /// [`Error::Program`] when it does not start, or does not end well.
    pub fn run(&self, contestant: &Contestant) -> Result<process::Usage> {
        let said = self.folder.join("stderr");
        let stderr = std::fs::File::create(&said).map_err(Error::file(&said))?;
        let mut command = self.command(contestant);
        command.args(self.program.arguments).stderr(stderr);
        let usage = match &self.client {
            None => command.spawn().and_then(process::wait),
            Some(client) => server::run(command, client),
        };
        let usage = usage.map_err(|error| self.failed(contestant, error.to_string()))?;
        if usage.status.success() {
            return Ok(usage);
        }
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        Err(self.failed(contestant, format!("{}: {said}", usage.status)))
    }

    fn failed(&self, contestant: &Contestant, said: String) -> Error {
        Error::Program { program: self.program.name, under: contestant.name.clone(), said }
    }

    /// The contestant as this program needs it, and proof that it gets that malloc.
    ///
    /// A program that is linked with an allocator of its own has libc's malloc only where libc
    /// itself is preloaded, before that allocator.
    ///
    /// # Errors
    /// [`Error::WrongMalloc`] when it gets another one; [`Error::Program`] when it does not start.
    pub fn prepared(&self, contestant: &Contestant) -> Result<Contestant> {
        let origin = self.origin(contestant)?;
        let Some(libc) = origin.libc_to_preload(contestant) else {
            origin.check(contestant)?;
            return Ok(contestant.clone());
        };
        let preloaded = Contestant::preloaded(&contestant.name, contestant.role, &libc)?;
        self.origin(&preloaded)?.check(&preloaded)?;
        Ok(preloaded)
    }

    fn origin(&self, contestant: &Contestant) -> Result<origin::Origin> {
        let mut command = self.command(contestant);
        command.args(self.program.probe).envs(origin::SETTINGS);
        let output =
            command.output().map_err(|error| self.failed(contestant, error.to_string()))?;
        if !output.status.success() {
            return Err(self.failed(contestant, format!("{} of the probe", output.status)));
        }
        Ok(origin::Origin::parse(&String::from_utf8_lossy(&output.stderr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_program_is_refused() {
        assert!(
            matches!(installed(&["cobol".into()]), Err(Error::NoProgram(name)) if name == "cobol")
        );
    }

    #[test]
    fn a_command_is_found_by_its_name() {
        assert!(find("env").is_some_and(|file| file.is_absolute()));
        assert_eq!(find("no such command"), None);
    }

    #[test]
    fn every_input_is_what_its_program_is_told_to_read() {
        for program in PROGRAMS {
            let reads = |(name, _)| program.arguments.iter().any(|word| word.contains(name));
            assert!(program.input.is_none_or(reads), "{}", program.name);
        }
    }
}
