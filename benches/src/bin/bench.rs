//! `bench`: runs the benches and prints their tables.

use clap::{Args, Parser, Subcommand};
use homenode_benches::contestant::{Contestant, HOMENODE, homenode_so, peers};
use homenode_benches::driver::{Drains, Driver, Job};
use homenode_benches::rounds::{Entry, measure};
use homenode_benches::{Error, Result, paired, verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Benches of homenode against its peers.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// malloc and free pairs, batches and mixed sizes on one CPU.
    Pair(Pair),
}

#[derive(Debug, Args)]
struct Pair {
    /// Rounds: each starts every contestant once.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Five rounds: a first look.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Exit with 1 when a small pair is above the bar (with --ab or --drain: when a row is slower).
    #[arg(long)]
    check: bool,
    /// Write all figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare two builds, the old one first.
    #[arg(long, num_args = 2, value_names = ["OLD.so", "NEW.so"], conflicts_with = "drain")]
    ab: Option<Vec<PathBuf>>,
    /// Measure what so many remote drains a second cost the drained CPU.
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..))]
    drain: Option<u32>,
    /// Run only the rows whose name contains this.
    #[arg(long, default_value = "")]
    rows: String,
    /// The CPU to measure on; else the highest allowed one.
    #[arg(long)]
    cpu: Option<u32>,
}

/// Timed chunks a row: about 5 ms, enough for a clean minimum.
const CHUNKS: u32 = 250;
/// Timed chunks a row where means count: about 100 ms, several periods of 100 drains a second.
const CHUNKS_FOR_MEANS: u32 = 5000;

impl Pair {
    fn rounds(&self) -> u32 {
        if self.quick { 5 } else { self.rounds }
    }

    fn job(&self, chunks: u32, drains: Drains) -> Job {
        Job { cpu: self.cpu, chunks, rows: self.rows.clone(), drains }
    }

    fn write_json(&self, report: &impl Serialize) -> Result<()> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(report)
            .map_err(|e| Error::File(path.clone(), e.into()))?;
        std::fs::write(path, text + "\n").map_err(Error::file(path))
    }

    fn against_peers(&self) -> Result<bool> {
        let (found, missing) = peers();
        for path in missing {
            eprintln!("skipped, not installed: {}", path.display());
        }
        let mut contestants = vec![Contestant::preloaded(HOMENODE, &homenode_so()?)?];
        contestants.extend(found);
        let names: Vec<String> = contestants.iter().map(|c| c.name.clone()).collect();
        let job = self.job(CHUNKS, Drains::None);
        let entry = |contestant| Entry { contestant, job: job.clone() };
        let entries: Vec<Entry> = contestants.into_iter().map(entry).collect();
        let measured = measure(&Driver::build()?, &entries, self.rounds())?;
        let report = verdict::Report::new(&names, self.rounds(), measured);
        print!("{}", report.text());
        self.write_json(&report)?;
        Ok(report.within_bar())
    }

    fn two(&self, names: [String; 2], entries: [Entry; 2], by: paired::Figure) -> Result<bool> {
        let measured = measure(&Driver::build()?, &entries, self.rounds())?;
        let report = paired::Report::new(names, self.rounds(), by, measured);
        print!("{}", report.text());
        self.write_json(&report)?;
        Ok(report.nothing_slower())
    }

    fn builds(&self, old: &Path, new: &Path) -> Result<bool> {
        let names = [old, new].map(|path| path.display().to_string());
        let entry = |name: &str, path| {
            let contestant = Contestant::preloaded(name, path)?;
            Ok(Entry { contestant, job: self.job(CHUNKS, Drains::None) })
        };
        let entries = [entry("the old build", old)?, entry("the new build", new)?];
        self.two(names, entries, paired::Figure::Quartile)
    }

    fn drained(&self, per_second: u32) -> Result<bool> {
        let contestant = Contestant::preloaded(HOMENODE, &homenode_so()?)?;
        let entries = [Drains::Dry(per_second), Drains::PerSecond(per_second)].map(|drains| {
            let job = self.job(CHUNKS_FOR_MEANS, drains);
            Entry { contestant: contestant.clone(), job }
        });
        let names = [
            format!("a second thread wakes up {per_second} times a second"),
            format!("a second thread drains {per_second} times a second"),
        ];
        self.two(names, entries, paired::Figure::Mean)
    }

    fn run(&self) -> Result<bool> {
        match (&self.ab, self.drain) {
            (Some(builds), _) => self.builds(&builds[0], &builds[1]),
            (None, Some(per_second)) => self.drained(per_second),
            (None, None) => self.against_peers(),
        }
    }
}

fn main() -> ExitCode {
    let Bench::Pair(pair) = Cli::parse().bench;
    match pair.run() {
        Ok(good) if good || !pair.check => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("bench: the check failed, see the verdicts");
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}
