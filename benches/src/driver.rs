//! The measured program: `drivers/pair.c`, built by `cc`, started once per contestant and round.

use crate::contestant::{Contestant, target_dir};
use crate::error::{Error, Result};
use serde::Deserialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("../drivers/pair.c");

/// How the driver drains while it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drains {
    /// One thread, no drains.
    None,
    /// A second thread wakes up so many times a second and does nothing.
    Dry(u32),
    /// A second thread drains the measured CPU so many times a second.
    PerSecond(u32),
}

/// What one start of the driver measures.
#[derive(Debug, Clone)]
pub struct Job {
    /// The CPU to pin to; none is the highest allowed one.
    pub cpu: Option<u32>,
    /// Timed chunks a row.
    pub chunks: u32,
    /// Part of the names of the rows to run; empty is all.
    pub rows: String,
    /// Drains meanwhile.
    pub drains: Drains,
}

/// One row of one start: nanoseconds per malloc and free.
#[derive(Debug, Clone, Deserialize)]
pub struct Reading {
    /// The row's name.
    pub row: String,
    /// The fastest chunk.
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

/// The built driver.
#[derive(Debug)]
pub struct Driver {
    program: PathBuf,
}

impl Driver {
    /// Compiles the driver into the target folder.
    ///
    /// # Errors
    /// When `cc` is missing or refuses, or the folder cannot be written.
    pub fn build() -> Result<Self> {
        let folder = target_dir()?.join("bench-drivers");
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let program = folder.join("pair");
        let failed = |said: String| Error::Tool { tool: "cc", said };
        let mut cc = Command::new("cc")
            .args(["-O2", "-fno-builtin", "-pthread", "-x", "c", "-", "-ldl", "-o"])
            .arg(&program)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        if let Some(mut stdin) = cc.stdin.take() {
            stdin.write_all(SOURCE.as_bytes()).map_err(|e| failed(e.to_string()))?;
        }
        let output = cc.wait_with_output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(Self { program })
    }

    /// Starts the driver once, under `contestant`.
    ///
    /// # Errors
    /// When it fails, prints an unknown line, or ran with another malloc.
    pub fn run(&self, contestant: &Contestant, job: &Job) -> Result<(Vec<Reading>, Summary)> {
        let (per_second, dry) = match job.drains {
            Drains::None => (0, "0"),
            Drains::Dry(n) => (n, "1"),
            Drains::PerSecond(n) => (n, "0"),
        };
        let mut command = Command::new(&self.program);
        command
            .arg(job.cpu.map_or("-1".into(), |cpu| cpu.to_string()))
            .args([&job.chunks.to_string(), &per_second.to_string(), dry, &job.rows])
            .env_remove("LD_PRELOAD");
        if let Some(library) = &contestant.library {
            command.env("LD_PRELOAD", library);
        }
        let failed = |said: String| Error::Driver { under: contestant.name.clone(), said };
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}: {said}", output.status)));
        }
        let (readings, summary) = parse(&String::from_utf8_lossy(&output.stdout))?;
        check_malloc(contestant, &summary)?;
        if readings.is_empty() {
            return Err(Error::NoRow(job.rows.clone()));
        }
        Ok((readings, summary))
    }
}

/// A library that does not load is skipped by the loader with a mere warning.
fn check_malloc(contestant: &Contestant, summary: &Summary) -> Result<()> {
    let right = match &contestant.library {
        Some(library) => Path::new(&summary.malloc) == library,
        None => summary.malloc.contains("libc.so"),
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

    const LAST: &str =
        r#"{"malloc":"/lib/libc.so.6","cpu":1,"involuntary":2,"drains":0,"refused":0}"#;

    #[test]
    fn rows_and_the_last_line_are_read() {
        let row = r#"{"row":"pair 16 B","min":2.8,"p25":2.9,"mean":3.1,"chunks":200,"ops":8192}"#;
        let (readings, summary) = parse(&format!("{row}\n{LAST}\n")).unwrap();
        assert_eq!((readings[0].row.as_str(), readings[0].min), ("pair 16 B", 2.8));
        assert_eq!(summary.involuntary, 2);
    }

    #[test]
    fn a_run_cut_short_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("out of memory\n").is_err());
    }

    #[test]
    fn a_preload_that_did_not_load_is_noticed() {
        let (_, summary) = parse(LAST).unwrap();
        let library = Some(PathBuf::from("/opt/libhomenode.so"));
        let homenode = Contestant { name: "homenode".into(), library };
        assert!(check_malloc(&homenode, &summary).is_err());
        assert!(check_malloc(&Contestant::libc(), &summary).is_ok());
    }
}
