//! One against another, round by round: two builds, or one with drains and without.

use crate::load::Load;
use crate::rounds::{Rounds, Samples};
use crate::stats::{Interval, median, sign_interval};
use crate::table::Table;
use serde::Serialize;

/// A row is slower when its whole interval lies above this: what two runs of one build differ by.
pub const TIE: f64 = 1.01;

/// Which figure of a round is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The chunks' lower quartile: the path itself, without what interrupts it now and then.
    Quartile,
    /// The chunks' mean: what happens rarely counts too.
    Mean,
}

/// One row of a paired comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The row's name.
    pub row: String,
    /// First entry, median over rounds, in the row's unit.
    pub first: f64,
    /// Second entry, likewise.
    pub second: f64,
    /// Median over rounds of second / first.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub low: f64,
    /// Upper end of the ratio's interval.
    pub high: f64,
}

/// The whole comparison.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What the two entries are.
    pub names: [String; 2],
    /// Rounds measured.
    pub rounds: u32,
    /// Probability that an interval holds the true median.
    pub coverage: f64,
    /// The CPU measured on.
    pub cpu: u32,
    /// Drains called in all rounds.
    pub drains: u64,
    /// Drains that returned an error.
    pub refused: u64,
    /// The rows.
    pub rows: Vec<Row>,
    /// What else the machine did.
    pub load: Load,
}

fn values(samples: &Samples, figure: Figure) -> &[f64] {
    match figure {
        Figure::Quartile => &samples.p25,
        Figure::Mean => &samples.mean,
    }
}

/// The row of two entries' rounds, and its interval.
pub(crate) fn compare(row: &str, first: &[f64], second: &[f64]) -> (Row, Interval) {
    let ratios: Vec<f64> = first.iter().zip(second).map(|(a, b)| b / a).collect();
    let interval = sign_interval(&ratios);
    let row = Row {
        row: row.into(),
        first: median(first),
        second: median(second),
        ratio: median(&ratios),
        low: interval.low,
        high: interval.high,
    };
    (row, interval)
}

impl Row {
    fn verdict(&self) -> &'static str {
        if self.low > TIE {
            "SLOWER"
        } else if self.high < 1.0 / TIE {
            "faster"
        } else if self.low >= 1.0 / TIE && self.high <= TIE {
            "same"
        } else {
            "unclear"
        }
    }
}

impl Report {
    /// Draws the report up from two entries' rounds.
    #[must_use]
    pub fn new(names: [String; 2], rounds: u32, figure: Figure, measured: Rounds) -> Self {
        let (mut rows, mut coverage) = (Vec::new(), 1.0_f64);
        for (index, measured_row) in measured.rows.iter().enumerate() {
            let [first, second] = [0, 1].map(|e| values(&measured.samples[e][index], figure));
            let (row, interval) = compare(measured_row.name, first, second);
            rows.push(row);
            coverage = coverage.min(interval.coverage);
        }
        let Rounds { cpu, drains, refused, load, .. } = measured;
        Self { names, rounds, coverage, cpu, drains, refused, rows, load }
    }

    /// Whether no row is slower in the second entry.
    #[must_use]
    pub fn nothing_slower(&self) -> bool {
        self.rows.iter().all(|row| row.verdict() != "SLOWER")
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let percent = 100.0 * self.coverage;
        let interval = format!("{percent:.0} % interval");
        let mut table = Table::new(["row", "first", "second", "ratio", &interval, "verdict"]);
        for row in &self.rows {
            table.push(vec![
                row.row.clone(),
                format!("{:.2}", row.first),
                format!("{:.2}", row.second),
                format!("{:.3}", row.ratio),
                format!("{:.3}..{:.3}", row.low, row.high),
                row.verdict().into(),
            ]);
        }
        let drains = match self.drains {
            0 => String::new(),
            n => format!("drains: {n}, of which refused: {}\n", self.refused),
        };
        format!(
            "first:  {}\nsecond: {}\n\n{table}\nratio: second over first, median of {} paired \
             rounds on CPU {}; slower: the whole\ninterval is above {TIE}; unclear: it is too \
             wide to say, take more rounds\n{drains}{}\n",
            self.names[0],
            self.names[1],
            self.rounds,
            self.cpu,
            self.load.line()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_round_of_both_does_not_count() {
        let (row, _) =
            compare("pair 16 B", &[2.0, 2.0, 8.0, 2.0, 2.0, 2.0], &[2.2, 2.2, 8.8, 2.2, 2.2, 2.2]);
        assert!((row.ratio - 1.1).abs() < 1e-9);
        assert_eq!(row.verdict(), "SLOWER");
    }

    #[test]
    fn same_is_said_only_of_a_narrow_interval() {
        let (row, _) = compare("pair 16 B", &[2.0; 6], &[2.01, 1.99, 2.0, 2.0, 1.99, 2.01]);
        assert_eq!(row.verdict(), "same");
        let (row, _) = compare("pair 16 B", &[2.0; 6], &[2.2, 1.9, 2.1, 2.0, 1.9, 2.2]);
        assert_eq!(row.verdict(), "unclear");
    }

    #[test]
    fn a_faster_second_is_said() {
        let (row, _) = compare("pair 16 B", &[2.0; 6], &[1.8; 6]);
        assert_eq!(row.verdict(), "faster");
    }
}
