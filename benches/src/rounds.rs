//! Interleaved rounds: each round starts every entry once, in an order that changes, so that a
//! machine that slows down or speeds up does so for all of them.

use crate::contestant::Contestant;
use crate::driver::{Driver, Job, Reading};
use crate::error::Result;
use crate::load::{Before, Load};
use std::io::IsTerminal;

/// A contestant and how it is measured.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Who.
    pub contestant: Contestant,
    /// How.
    pub job: Job,
}

/// The readings of one row under one entry, one a round.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Fastest chunk of each round.
    pub min: Vec<f64>,
    /// Lower quartile of the chunks of each round.
    pub p25: Vec<f64>,
    /// Mean of the chunks of each round.
    pub mean: Vec<f64>,
}

/// All rounds of one comparison.
#[derive(Debug)]
pub struct Rounds {
    /// The rows' names, in the driver's order.
    pub rows: Vec<String>,
    /// For each entry, in the order given, the samples of each row.
    pub samples: Vec<Vec<Samples>>,
    /// The CPU measured on.
    pub cpu: u32,
    /// Drains called in all rounds.
    pub drains: u64,
    /// Drains that returned an error.
    pub refused: u64,
    /// What else the machine did.
    pub load: Load,
}

/// Measures all entries for `rounds` rounds.
///
/// # Errors
/// When one start of the driver fails.
pub fn measure(driver: &Driver, entries: &[Entry], rounds: u32) -> Result<Rounds> {
    let before = Before::now();
    let mut involuntary = 0;
    let (mut rows, mut cpu, mut drains, mut refused) = (Vec::new(), 0, 0, 0);
    let mut samples: Vec<Vec<Samples>> = vec![Vec::new(); entries.len()];
    for round in 0..rounds as usize {
        if std::io::stderr().is_terminal() {
            eprint!("\rround {} of {rounds} ", round + 1);
        }
        for index in order(round, entries.len()) {
            let entry = &entries[index];
            let (readings, summary) = driver.run(&entry.contestant, &entry.job)?;
            record(&mut samples[index], &readings);
            rows = readings.into_iter().map(|r| r.row).collect();
            cpu = summary.cpu;
            involuntary += summary.involuntary;
            drains += summary.drains;
            refused += summary.refused;
        }
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    Ok(Rounds { rows, samples, cpu, drains, refused, load: before.until_now(involuntary) })
}

fn record(samples: &mut Vec<Samples>, readings: &[Reading]) {
    samples.resize(readings.len(), Samples::default());
    for (row, reading) in samples.iter_mut().zip(readings) {
        row.min.push(reading.min);
        row.p25.push(reading.p25);
        row.mean.push(reading.mean);
    }
}

/// The order of one round: rotated by one each round, and reversed in every second cycle, so that
/// each entry takes each place and follows each neighbour equally often. Two entries: AB BA BA AB.
fn order(round: usize, entries: usize) -> Vec<usize> {
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
