//! The measured programs, started once per contestant and round: `drivers/*.c`, built by `cc` here,
//! and `churn`, built by [`peers`].

use crate::contestant::{Contestant, Malloc, Role, target_dir};
use crate::error::{Error, Result};
use crate::peers;
use crate::rows::{Program, Row};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What all C sources include.
const FRAME: [(&str, &str); 2] = [
    ("frame.h", include_str!("../drivers/frame.h")),
    ("drain.h", include_str!("../drivers/drain.h")),
];

/// The C source of `program`; none if it is a Rust program.
#[must_use]
pub fn source(program: Program) -> Option<&'static str> {
    Some(match program {
        Program::Pair => include_str!("../drivers/pair.c"),
        Program::Batch => include_str!("../drivers/batch.c"),
        Program::Shape => include_str!("../drivers/shape.c"),
        Program::Threads => include_str!("../drivers/threads.c"),
        Program::Startup => include_str!("../drivers/startup.c"),
        Program::Resident => include_str!("../drivers/resident.c"),
        Program::Rust | Program::RustThin => return None,
    })
}

/// How the driver drains while it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drains {
    /// No second thread.
    None,
    /// A second thread wakes up so many times a second and does nothing.
    Dry(u32),
    /// A second thread drains the measured CPU so many times a second.
    PerSecond(u32),
}

/// How rows are measured.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// The CPU to pin to; none is the highest allowed one.
    pub cpu: Option<u32>,
    /// Timed chunks a row, at most.
    pub chunks: u32,
    /// Drains meanwhile.
    pub drains: Drains,
}

/// One row of one start, in the row's unit.
#[derive(Debug, Clone, Deserialize)]
pub struct Reading {
    /// The row's name.
    pub row: String,
    /// The lowest chunk.
    pub min: f64,
    /// The lower quartile of the chunks.
    pub p25: f64,
    /// The mean of the chunks: the only one that sees what happens rarely.
    pub mean: f64,
}

/// The last line of one start.
#[derive(Debug, Clone, Deserialize)]
pub struct Summary {
    /// The file that `malloc` came from.
    pub malloc: String,
    /// The CPU it ran on.
    pub cpu: u32,
    /// How often the measured thread lost its CPU.
    pub involuntary: u64,
    /// Drains called.
    pub drains: u64,
    /// Drains that returned an error.
    pub refused: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Reading(Reading),
    Summary(Summary),
}

/// The folder of the built drivers.
#[derive(Debug)]
pub struct Drivers {
    folder: PathBuf,
}

impl Drivers {
    /// Compiles the drivers into the target folder, and the empty library of the start-up row.
    ///
    /// # Errors
    /// When `cc` is missing or refuses, or the folder cannot be written.
    pub fn build() -> Result<Self> {
        let folder = target_dir()?.join("bench-drivers");
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        for (name, text) in FRAME {
            write(&folder.join(name), text)?;
        }
        for program in Program::ALL {
            let Some(text) = source(program) else { continue };
            let file = folder.join(program.name()).with_extension("c");
            write(&file, text)?;
            compile(&["-fno-builtin", "-pthread"], &file, &folder.join(program.name()))?;
        }
        let empty = folder.join("empty.c");
        write(&empty, "")?;
        compile(&["-shared"], &empty, &folder.join("empty.so"))?;
        Ok(Self { folder })
    }

    /// A preload that does nothing.
    ///
    /// # Errors
    /// When it is gone.
    pub fn empty_preload(&self) -> Result<Contestant> {
        Contestant::preloaded("empty", Role::Reference, &self.folder.join("empty.so"))
    }

    /// The file of `program` for `contestant`; none where that one has no place in its rows.
    ///
    /// # Errors
    /// When this program's own path is unknown.
    pub fn file(&self, program: Program, contestant: &Contestant) -> Result<Option<PathBuf>> {
        if program.is_rust() {
            let file = peers::churn(&contestant.churn, program)?;
            return Ok(file.exists().then_some(file));
        }
        let shown = contestant.role != Role::Reference || program == Program::Startup;
        let has_malloc = contestant.malloc != Malloc::None;
        Ok((shown && has_malloc).then(|| self.folder.join(program.name())))
    }

    /// Measures `rows`, all of one program, in one start of its `file` under `contestant`.
    ///
    /// # Errors
    /// When it fails, prints an unknown line, or ran with another malloc.
    pub fn run(
        &self,
        file: &Path,
        contestant: &Contestant,
        rows: &[Row],
        job: &Job,
    ) -> Result<(Vec<Reading>, Summary)> {
        let is_rust = rows.iter().any(|row| row.program.is_rust());
        let (per_second, dry) = match job.drains {
            Drains::None => (0, "0"),
            Drains::Dry(n) => (n, "1"),
            Drains::PerSecond(n) => (n, "0"),
        };
        let mut command = contestant.command(file, is_rust);
        command
            .arg(job.cpu.map_or("-1".into(), |cpu| cpu.to_string()))
            .args([&job.chunks.to_string(), &per_second.to_string(), dry])
            .args(rows.iter().map(|row| row.name));
        let failed = |said: String| Error::Driver { under: contestant.name.clone(), said };
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}: {said}", output.status)));
        }
        let (readings, summary) = parse(&String::from_utf8_lossy(&output.stdout))?;
        check_rows(rows, &readings)?;
        check_malloc(contestant, is_rust, &summary)?;
        Ok((readings, summary))
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Error::file(path))
}

fn compile(options: &[&str], from: &Path, to: &Path) -> Result<()> {
    let failed = |said: String| Error::Tool { tool: "cc", said };
    let output = Command::new("cc")
        .arg("-O2")
        .args(options)
        .arg(from)
        .args(["-ldl", "-o"])
        .arg(to)
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Rows are told apart by their place later on.
fn check_rows(asked: &[Row], readings: &[Reading]) -> Result<()> {
    if asked.iter().map(|row| row.name).eq(readings.iter().map(|r| r.row.as_str())) {
        return Ok(());
    }
    Err(Error::Protocol("(not the rows asked for)".into()))
}

/// A library that does not load is skipped by the loader with a mere warning.
fn check_malloc(contestant: &Contestant, is_rust: bool, summary: &Summary) -> Result<()> {
    let right = match &contestant.malloc {
        _ if is_rust => summary.malloc == contestant.churn,
        Malloc::Preload(library) if contestant.role != Role::Reference => {
            Path::new(&summary.malloc) == library
        }
        _ => summary.malloc.contains("libc.so"),
    };
    let (wanted, found) = (contestant.name.clone(), summary.malloc.clone());
    if right { Ok(()) } else { Err(Error::WrongMalloc { wanted, found }) }
}

fn parse(output: &str) -> Result<(Vec<Reading>, Summary)> {
    let mut readings = Vec::new();
    let mut summary = None;
    for line in output.lines() {
        match serde_json::from_str(line).map_err(|_| Error::Protocol(line.into()))? {
            Line::Reading(reading) => readings.push(reading),
            Line::Summary(last) => summary = Some(last),
        }
    }
    let summary = summary.ok_or_else(|| Error::Protocol("(no last line)".into()))?;
    Ok((readings, summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::ROWS;

    const FIRST: &str = r#"{"row":"pair 16 B","min":2.8,"p25":2.9,"mean":3.1}"#;
    const LAST: &str =
        r#"{"malloc":"/lib/libc.so.6","cpu":1,"involuntary":2,"drains":0,"refused":0}"#;

    #[test]
    fn rows_and_the_last_line_are_read() {
        let (readings, summary) = parse(&format!("{FIRST}\n{LAST}\n")).unwrap();
        assert_eq!((readings[0].row.as_str(), readings[0].min), ("pair 16 B", 2.8));
        assert_eq!(summary.involuntary, 2);
    }

    #[test]
    fn a_run_cut_short_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("out of memory\n").is_err());
    }

    #[test]
    fn a_missing_row_is_noticed() {
        let (readings, _) = parse(&format!("{FIRST}\n{LAST}\n")).unwrap();
        assert!(check_rows(&ROWS[..1], &readings).is_ok());
        assert!(check_rows(&ROWS[..2], &readings).is_err());
    }

    #[test]
    fn a_preload_that_did_not_load_is_noticed() {
        let (_, summary) = parse(LAST).unwrap();
        let mut homenode = Contestant::new("homenode", Role::Own, Malloc::Libc);
        assert!(check_malloc(&homenode, false, &summary).is_ok());
        homenode.malloc = Malloc::Preload(PathBuf::from("/opt/libhomenode.so"));
        assert!(check_malloc(&homenode, false, &summary).is_err());
        assert!(check_malloc(&homenode, true, &summary).is_err());
    }
}
