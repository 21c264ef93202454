//! `bench`: runs the benches and prints their tables.

use clap::{Args, Parser, Subcommand};
use homenode_benches::contestant::{
    Contestant, GLIBC, HOMENODE, Malloc, Role, homenode_so, homenodes,
};
use homenode_benches::driver::{Drains, Drivers, Job};
use homenode_benches::rounds::{Entry, measure};
use homenode_benches::rows::{Row, selected};
use homenode_benches::{Error, Result, paired, peers, plots, programs, verdict};
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
    /// All rows.
    Run(Options),
    /// The rows of one thread on one CPU: pairs, batches, mixed sizes.
    Pair(Options),
    /// Real programs: CPU time and resident memory.
    Programs(ProgramOptions),
    /// Build the peers, and the Rust programs: once, then what has changed.
    Peers,
}

#[derive(Debug, Args)]
struct Options {
    /// Rounds: each starts every contestant once.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Five rounds: a first look.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Exit with 1 when a row is above its bar (with --ab or --drain: when a row is slower).
    #[arg(long)]
    check: bool,
    /// Write all figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw a plot of each program's rows into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["ab", "drain"])]
    plots: Option<PathBuf>,
    /// Compare two builds, the old one first.
    #[arg(long, num_args = 2, value_names = ["OLD.so", "NEW.so"], conflicts_with = "drain")]
    ab: Option<Vec<PathBuf>>,
    /// Measure what so many remote drains a second cost the drained CPU.
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..))]
    drain: Option<u32>,
    /// Run only the rows whose name contains this, or one of several parts: "16 B,mixed".
    #[arg(long, default_value = "")]
    rows: String,
    /// The CPU to measure on; else the highest allowed one.
    #[arg(long)]
    cpu: Option<u32>,
}

#[derive(Debug, Args)]
struct ProgramOptions {
    /// Rounds: each runs every program once under every contestant.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Five rounds: a first look.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Exit with 1 when a program is above its bar.
    #[arg(long)]
    check: bool,
    /// Write all figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run only these programs: "lua,redis".
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Against all peers, not only those that a bar names; and on two invented nodes.
    #[arg(long)]
    all: bool,
}

/// Timed chunks a row: about 5 ms, enough for a clean minimum.
const CHUNKS: u32 = 250;
/// Timed chunks a row where means count: about 100 ms, several periods of 100 drains a second.
const CHUNKS_FOR_MEANS: u32 = 5000;

/// One run of the options over some rows.
struct Comparison<'a> {
    options: &'a Options,
    rows: Vec<Row>,
}

impl Options {
    fn rounds(&self) -> u32 {
        if self.quick { 5 } else { self.rounds }
    }

    fn job(&self, chunks: u32, drains: Drains) -> Job {
        Job { cpu: self.cpu, chunks, drains }
    }
}

fn write_json(path: Option<&Path>, report: &impl Serialize) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let text =
        serde_json::to_string_pretty(report).map_err(|e| Error::File(path.into(), e.into()))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    }
    std::fs::write(path, text + "\n").map_err(Error::file(path))
}

impl ProgramOptions {
    fn contestants(&self) -> Result<Vec<Contestant>> {
        let (peers, missing) = peers::found()?;
        let wanted = |name: &str| self.all || [GLIBC, "mimalloc2"].contains(&name);
        for name in missing.iter().filter(|name| wanted(name)) {
            eprintln!("skipped, neither built by `bench peers` nor installed: {name}");
        }
        let mut contestants = homenodes()?;
        contestants.truncate(if self.all { 2 } else { 1 });
        let has_malloc = |peer: &Contestant| peer.malloc != Malloc::None;
        contestants.extend(peers.into_iter().filter(|p| wanted(&p.name) && has_malloc(p)));
        Ok(contestants)
    }

    fn run(&self) -> Result<bool> {
        let (installed, missing) = programs::installed(&self.only)?;
        for name in missing {
            eprintln!("skipped, not installed (scripts/install-packages bench): {name}");
        }
        if installed.is_empty() {
            return Err(Error::NothingInstalled);
        }
        let contestants = self.contestants()?;
        let rounds = if self.quick { 5 } else { self.rounds };
        let measured = programs::rounds::measure(&installed, &contestants, rounds)?;
        let report = programs::report::Report::new(&contestants, rounds, measured);
        print!("{}", report.text());
        write_json(self.json.as_deref(), &report)?;
        Ok(report.within_bar())
    }
}

impl<'a> Comparison<'a> {
    /// A drain is felt by the CPU that is drained, so it has rows of one thread only; two builds
    /// of the library make no difference to Rust programs.
    fn new(options: &'a Options, one_thread: bool) -> Result<Self> {
        let one_thread = one_thread || options.drain.is_some();
        let rows = selected(&options.rows, |row| {
            let wanted = !one_thread || row.program.is_one_thread();
            wanted && (options.ab.is_none() || !row.program.is_rust())
        });
        if rows.is_empty() {
            return Err(Error::NoRow(options.rows.clone()));
        }
        Ok(Self { options, rows })
    }

    /// The rows that homenode can be measured in.
    fn rows_of(&self, drivers: &Drivers, own: &Contestant) -> Result<Vec<Row>> {
        let (mut rows, mut skipped) = (Vec::new(), Vec::new());
        let renewed = if self.rows.iter().any(|row| row.program.is_rust()) {
            peers::renew_churn(HOMENODE)
        } else {
            Ok(())
        };
        for row in &self.rows {
            let stale = renewed.is_err() && row.program.is_rust();
            if !stale && drivers.file(row.program, own)?.is_some() {
                rows.push(*row);
            } else {
                skipped.push(row.name);
            }
        }
        if !skipped.is_empty() {
            let why = renewed.err().map_or("not built by `bench peers`".into(), |e| e.to_string());
            eprintln!("skipped, {why}: {}", skipped.join(", "));
        }
        Ok(rows)
    }

    fn against_peers(&self) -> Result<bool> {
        let drivers = Drivers::build()?;
        let (found, missing) = peers::found()?;
        for name in missing {
            eprintln!("skipped, neither built by `bench peers` nor installed: {name}");
        }
        let mut contestants = homenodes()?;
        contestants.extend(found);
        contestants.push(drivers.empty_preload()?);
        let rows = self.rows_of(&drivers, &contestants[0])?;
        let job = self.options.job(CHUNKS, Drains::None);
        let entry = |contestant: &Contestant| Entry { contestant: contestant.clone(), job };
        let entries: Vec<Entry> = contestants.iter().map(entry).collect();
        let measured = measure(&drivers, &entries, &rows, self.options.rounds())?;
        let report = verdict::Report::new(&contestants, self.options.rounds(), measured);
        print!("{}", report.text());
        write_json(self.options.json.as_deref(), &report)?;
        if let Some(folder) = &self.options.plots {
            plots::write(&report, folder)?;
        }
        Ok(report.within_bar())
    }

    fn two(&self, names: [String; 2], entries: [Entry; 2], by: paired::Figure) -> Result<bool> {
        let rounds = self.options.rounds();
        let measured = measure(&Drivers::build()?, &entries, &self.rows, rounds)?;
        let report = paired::Report::new(names, rounds, by, measured);
        print!("{}", report.text());
        write_json(self.options.json.as_deref(), &report)?;
        Ok(report.nothing_slower())
    }

    fn builds(&self, old: &Path, new: &Path) -> Result<bool> {
        let names = [old, new].map(|path| path.display().to_string());
        let entry = |name: &str, path| {
            let contestant = Contestant::preloaded(name, Role::Own, path)?;
            Ok(Entry { contestant, job: self.options.job(CHUNKS, Drains::None) })
        };
        let entries = [entry("the old build", old)?, entry("the new build", new)?];
        self.two(names, entries, paired::Figure::Quartile)
    }

    fn drained(&self, per_second: u32) -> Result<bool> {
        let contestant = Contestant::preloaded(HOMENODE, Role::Own, &homenode_so()?)?;
        let entries = [Drains::Dry(per_second), Drains::PerSecond(per_second)].map(|drains| {
            let job = self.options.job(CHUNKS_FOR_MEANS, drains);
            Entry { contestant: contestant.clone(), job }
        });
        let names = [
            format!("a second thread wakes up {per_second} times a second"),
            format!("a second thread drains {per_second} times a second"),
        ];
        self.two(names, entries, paired::Figure::Mean)
    }

    fn run(&self) -> Result<bool> {
        match (&self.options.ab, self.options.drain) {
            (Some(builds), _) => self.builds(&builds[0], &builds[1]),
            (None, Some(per_second)) => self.drained(per_second),
            (None, None) => self.against_peers(),
        }
    }
}

fn build_peers() -> ExitCode {
    for line in peers::build() {
        eprintln!("skipped: {line}");
    }
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    let rows = |options: &Options, one_thread| {
        Comparison::new(options, one_thread).and_then(|comparison| comparison.run())
    };
    let (result, check) = match Cli::parse().bench {
        Bench::Run(options) => (rows(&options, false), options.check),
        Bench::Pair(options) => (rows(&options, true), options.check),
        Bench::Programs(options) => (options.run(), options.check),
        Bench::Peers => return build_peers(),
    };
    match result {
        Ok(good) if good || !check => ExitCode::SUCCESS,
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
