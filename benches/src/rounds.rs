//! Interleaved rounds: each round starts every entry once, in an order that changes, so that a
//! machine that slows down or speeds up does so for all of them.

use crate::contestant::{Contestant, Role};
use crate::driver::{Drivers, Job, Reading, Summary};
use crate::error::{Error, Result};
use crate::load::{Before, Load};
use crate::rows::Row;
use std::io::IsTerminal;

/// A contestant and how it is measured.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Who.
    pub contestant: Contestant,
    /// How.
    pub job: Job,
}

/// The readings of one row under one entry, one a round; empty when the entry has no place in it.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Lowest chunk of each round.
    pub min: Vec<f64>,
    /// Lower quartile of the chunks of each round.
    pub p25: Vec<f64>,
    /// Mean of the chunks of each round.
    pub mean: Vec<f64>,
}

/// All rounds of one comparison.
#[derive(Debug)]
pub struct Rounds {
    /// The rows.
    pub rows: Vec<Row>,
    /// For each entry, in the order given, the samples of each row.
    pub samples: Vec<Vec<Samples>>,
    /// The CPU measured on.
    pub cpu: u32,
    /// Drains called in all rounds.
    pub drains: u64,
    /// Drains that returned an error.
    pub refused: u64,
    /// Peers that failed in a program, and how: they have no place in its rows.
    pub failures: Vec<String>,
    /// What else the machine did.
    pub load: Load,
}

/// Measures `rows` under all entries for `rounds` rounds.
///
/// # Errors
/// When one start of a program fails, except under a peer.
pub fn measure(drivers: &Drivers, entries: &[Entry], rows: &[Row], rounds: u32) -> Result<Rounds> {
    let mut run = Run::new(drivers, entries, rows);
    let before = Before::now();
    for round in 0..rounds {
        show_round(round, rounds);
        run.round(round as usize)?;
    }
    Ok(Rounds {
        rows: rows.to_vec(),
        samples: run.samples,
        cpu: run.cpu,
        drains: run.drains,
        refused: run.refused,
        failures: run.failures,
        load: before.until_now(run.involuntary),
    })
}

/// Tells a person who waits how far it is.
pub(crate) fn show_round(round: u32, rounds: u32) {
    if std::io::stderr().is_terminal() {
        let end = if round + 1 == rounds { "\n" } else { "" };
        eprint!("\rround {} of {rounds} {end}", round + 1);
    }
}

/// A comparison that is going on.
struct Run<'a> {
    drivers: &'a Drivers,
    entries: &'a [Entry],
    rows: &'a [Row],
    samples: Vec<Vec<Samples>>,
    /// For each entry the first rows, by index, of the programs that it failed in.
    failed: Vec<Vec<usize>>,
    failures: Vec<String>,
    cpu: u32,
    drains: u64,
    refused: u64,
    involuntary: u64,
}

impl<'a> Run<'a> {
    fn new(drivers: &'a Drivers, entries: &'a [Entry], rows: &'a [Row]) -> Self {
        Self {
            drivers,
            entries,
            rows,
            samples: vec![vec![Samples::default(); rows.len()]; entries.len()],
            failed: vec![Vec::new(); entries.len()],
            failures: Vec::new(),
            cpu: 0,
            drains: 0,
            refused: 0,
            involuntary: 0,
        }
    }

    fn round(&mut self, round: usize) -> Result<()> {
        let rows = self.rows;
        let mut first = 0;
        for group in rows.chunk_by(|a, b| a.program == b.program) {
            for entry in order(round, self.entries.len()) {
                self.start(entry, first, group)?;
            }
            first += group.len();
        }
        Ok(())
    }

    /// Starts the program of `group`, whose rows begin at `first`, under one entry.
    fn start(&mut self, entry: usize, first: usize, group: &[Row]) -> Result<()> {
        let Entry { contestant, job } = &self.entries[entry];
        let program = group[0].program;
        let Some(file) = self.drivers.file(program, contestant)? else {
            return Ok(());
        };
        if self.failed[entry].contains(&first) {
            return Ok(());
        }
        match self.drivers.run(&file, contestant, group, job) {
            Ok((readings, summary)) => self.record(entry, first, &readings, &summary),
            Err(error @ Error::Driver { .. }) if contestant.role == Role::Peer => {
                self.failures.push(format!("{}: {error}", program.name()));
                self.failed[entry].push(first);
                self.samples[entry][first..first + group.len()].fill(Samples::default());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn record(&mut self, entry: usize, first: usize, readings: &[Reading], summary: &Summary) {
        for (row, reading) in self.samples[entry][first..].iter_mut().zip(readings) {
            row.min.push(reading.min);
            row.p25.push(reading.p25);
            row.mean.push(reading.mean);
        }
        self.cpu = summary.cpu;
        self.involuntary += summary.involuntary;
        self.drains += summary.drains;
        self.refused += summary.refused;
    }
}

/// The order of one round: rotated by one each round, and reversed in every second cycle, so that
/// each entry takes each place and follows each neighbour equally often. Two entries: AB BA BA AB.
pub(crate) fn order(round: usize, entries: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries).map(|i| (i + round) % entries).collect();
    if (round / entries) % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_entries_are_first_equally_often() {
        let firsts: Vec<usize> = (0..4).map(|round| order(round, 2)[0]).collect();
        assert_eq!(firsts, [0, 1, 1, 0]);
    }

    #[test]
    fn every_round_runs_every_entry_once() {
        for round in 0..12 {
            let mut entries = order(round, 5);
            entries.sort_unstable();
            assert_eq!(entries, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_neighbours_change_sides_every_cycle() {
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(3, 3), [2, 1, 0]);
    }
}
