//! homenode against its peers on real programs: paired ratios, and whether each is within its bar.

use super::rounds::{Measured, Rounds, Samples};
use crate::contestant::{Contestant, GLIBC, HOMENODE, Malloc, Role};
use crate::load::Load;
use crate::paired::{self, compare};
use crate::table::Table;
use serde::Serialize;
use std::path::PathBuf;

/// CPU time may be so many times that of each of [`CPU_PEERS`]: 3 % is a tie.
const CPU_BAR: f64 = 1.03;
/// The peers that the bar of CPU time names.
const CPU_PEERS: [&str; 2] = [GLIBC, "mimalloc2"];
/// Resident memory may at most be so many times glibc's.
const PEAK_BAR: f64 = 1.15;

/// What is compared of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Cpu,
    Peak,
}

/// homenode against one peer in one program.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The program, the peer's figure, homenode's, and their ratio.
    #[serde(flatten)]
    pub pair: paired::Row,
    /// What is compared, with its unit.
    pub figure: &'static str,
    /// homenode's name, with its setting.
    pub own: String,
    /// The peer.
    pub peer: String,
    /// What the ratio may be at most, if there is a bar.
    pub bar: Option<f64>,
    /// What follows.
    pub verdict: &'static str,
}

/// The whole comparison.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Rounds measured.
    pub rounds: u32,
    /// Probability that an interval holds the true median.
    pub coverage: f64,
    /// The rows: CPU time of all programs, then their memory.
    pub rows: Vec<Row>,
    /// What they come from.
    pub programs: Vec<Measured>,
    /// The contestants' names, and the libraries that they preloaded.
    pub libraries: Vec<(String, PathBuf)>,
    /// Peers that failed, and how.
    pub failures: Vec<String>,
    /// What else the machine did.
    pub load: Load,
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU s",
            Self::Peak => "peak MiB",
        }
    }

    fn of(self, samples: &Samples) -> &[f64] {
        match self {
            Self::Cpu => &samples.cpu,
            Self::Peak => &samples.peak,
        }
    }

    fn bar(self, peer: &str) -> Option<f64> {
        match self {
            Self::Cpu => CPU_PEERS.contains(&peer).then_some(CPU_BAR),
            Self::Peak => (peer == GLIBC).then_some(PEAK_BAR),
        }
    }
}

/// Above is only what lies above with its whole interval: foreign load widens an interval.
fn verdict(low: f64, high: f64, bar: Option<f64>) -> &'static str {
    match bar {
        None => "",
        Some(bar) if low > bar => "ABOVE",
        Some(bar) if high <= bar => "ok",
        Some(_) => "unclear",
    }
}

impl Row {
    /// None where one of the two has no place in the program. The interval's coverage comes beside.
    fn new(program: &str, figure: Figure, own: &Samples, peer: &Samples) -> Option<(Self, f64)> {
        let (ours, theirs) = (figure.of(own), figure.of(peer));
        if ours.is_empty() || theirs.is_empty() {
            return None;
        }
        let (pair, interval) = compare(program, theirs, ours);
        let bar = figure.bar(&peer.name);
        let verdict = verdict(pair.low, pair.high, bar);
        let (own, peer) = (own.name.clone(), peer.name.clone());
        Some((Self { pair, figure: figure.name(), own, peer, bar, verdict }, interval.coverage))
    }

    fn cells(&self) -> Vec<String> {
        let pair = &self.pair;
        vec![
            pair.row.clone(),
            self.figure.into(),
            self.own.clone(),
            format!("{:.3}", pair.second),
            self.peer.clone(),
            format!("{:.3}", pair.first),
            format!("{:.3}", pair.ratio),
            format!("{:.3}..{:.3}", pair.low, pair.high),
            self.bar.map_or_else(String::new, |bar| format!("{bar:.2}")),
            self.verdict.into(),
        ]
    }
}

fn rows_of(figure: Figure, measured: &Measured) -> impl Iterator<Item = (Row, f64)> {
    let is_own = |samples: &&Samples| matches!(samples.role, Role::Own | Role::Variant);
    let is_peer = |samples: &&Samples| samples.role == Role::Peer;
    measured.samples.iter().filter(is_own).flat_map(move |own| {
        let peers = measured.samples.iter().filter(is_peer);
        peers.filter_map(move |peer| Row::new(measured.program, figure, own, peer))
    })
}

impl Report {
    /// Draws the report up from the contestants' rounds.
    #[must_use]
    pub fn new(contestants: &[Contestant], rounds: u32, measured: Rounds) -> Self {
        let Rounds { programs, failures, load } = measured;
        let (mut rows, mut coverage) = (Vec::new(), 1.0_f64);
        for figure in [Figure::Cpu, Figure::Peak] {
            for (row, covered) in programs.iter().flat_map(|program| rows_of(figure, program)) {
                rows.push(row);
                coverage = coverage.min(covered);
            }
        }
        let library = |contestant: &Contestant| match &contestant.malloc {
            Malloc::Preload(path) => Some((contestant.name.clone(), path.clone())),
            Malloc::Libc | Malloc::None => None,
        };
        let libraries = contestants.iter().filter_map(library).collect();
        Self { rounds, coverage, rows, programs, libraries, failures, load }
    }

    /// Whether rows with a bar were measured, and none is above it.
    #[must_use]
    pub fn within_bar(&self) -> bool {
        let mut barred = self.rows.iter().filter(|row| row.bar.is_some()).peekable();
        barred.peek().is_some() && barred.all(|row| row.verdict != "ABOVE")
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let interval = format!("{:.0} % interval", 100.0 * self.coverage);
        let heading = ["program", "", "own", "", "peer", "", "ratio", &interval, "bar", "verdict"];
        let mut table = Table::new(heading);
        for row in &self.rows {
            table.push(row.cells());
        }
        let failures: String = self.failures.iter().map(|f| format!("failed: {f}\n")).collect();
        let library = |(name, path): &(String, PathBuf)| format!("{name}: {}\n", path.display());
        let libraries: String = self.libraries.iter().map(library).collect();
        format!(
            "{table}\nratio: {HOMENODE} over the peer, median of {} paired rounds; ABOVE: the whole \
             interval is above the bar;\nunclear: the bar lies within it, take more rounds\n\
             {libraries}{failures}{}\n",
            self.rounds,
            self.load.line()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Before;

    fn samples(name: &str, role: Role, cpu: f64) -> Samples {
        Samples { name: name.into(), role, cpu: vec![cpu; 6], peak: vec![10.0 * cpu; 6] }
    }

    fn report(own: f64, peers: &[(&str, f64)]) -> Report {
        let mut all = vec![samples(HOMENODE, Role::Own, own)];
        all.extend(peers.iter().map(|(name, cpu)| samples(name, Role::Peer, *cpu)));
        let programs = vec![Measured { program: "lua", samples: all }];
        let load = Before::now().until_now(0);
        Report::new(&[], 6, Rounds { programs, failures: Vec::new(), load })
    }

    fn verdicts(report: &Report) -> Vec<(&str, &str)> {
        report.rows.iter().map(|row| (row.peer.as_str(), row.verdict)).collect()
    }

    #[test]
    fn above_is_said_only_of_a_whole_interval() {
        assert_eq!(verdict(1.04, 1.09, Some(1.03)), "ABOVE");
        assert_eq!(verdict(1.02, 1.09, Some(1.03)), "unclear");
        assert_eq!(verdict(0.97, 1.03, Some(1.03)), "ok");
        assert_eq!(verdict(1.50, 1.60, None), "");
    }

    #[test]
    fn memory_is_judged_by_glibc_alone_and_time_by_two() {
        let report = report(1.1, &[(GLIBC, 1.0), ("mimalloc2", 0.9), ("snmalloc", 0.1)]);
        assert_eq!(
            verdicts(&report),
            [
                (GLIBC, "ABOVE"),
                ("mimalloc2", "ABOVE"),
                ("snmalloc", ""),
                (GLIBC, "ok"),
                ("mimalloc2", ""),
                ("snmalloc", ""),
            ]
        );
    }

    #[test]
    fn the_ratio_is_ours_over_theirs() {
        let report = report(1.0, &[(GLIBC, 2.0)]);
        assert_eq!(report.rows[0].pair.ratio, 0.5);
        assert_eq!((report.rows[1].pair.first, report.rows[1].pair.second), (20.0, 10.0));
    }

    #[test]
    fn a_peer_without_a_place_has_no_row() {
        let mut measured = report(1.0, &[(GLIBC, 1.0), ("rpmalloc", 1.0)]).programs;
        measured[0].samples[2].cpu.clear();
        let peers: Vec<_> = rows_of(Figure::Cpu, &measured[0]).map(|(row, _)| row.peer).collect();
        assert_eq!(peers, [GLIBC]);
    }

    #[test]
    fn a_check_that_measured_no_bar_fails() {
        assert!(!report(1.0, &[("snmalloc", 1.0)]).within_bar());
        assert!(report(1.0, &[(GLIBC, 1.0)]).within_bar());
        assert!(!report(1.2, &[(GLIBC, 1.0)]).within_bar());
    }
}
