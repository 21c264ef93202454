//! homenode against its peers: a line a row, and the bar on small pairs.

use crate::contestant::HOMENODE;
use crate::load::Load;
use crate::rounds::{Rounds, Samples};
use crate::stats::{interquartile_range, median, minimum};
use crate::table::Table;
use serde::Serialize;

/// homenode's time over the best peer's, at most: 3 % is a tie.
pub const BAR: f64 = 1.03;

/// The rows that the bar is for.
const BAR_ROWS: [&str; 4] = ["pair 16 B", "pair 64 B", "pair 256 B", "pair 1 KiB"];

/// One contestant in one row: nanoseconds per malloc and free.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Who.
    pub name: String,
    /// The fastest chunk of all rounds.
    pub fastest: f64,
    /// The median over rounds of the chunks' lower quartile.
    pub typical: f64,
    /// The interquartile range over rounds of the chunks' lower quartile.
    pub spread: f64,
}

/// One row: homenode against every peer.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The row's name.
    pub row: String,
    /// homenode's figure.
    pub homenode: Figure,
    /// The peers' figures.
    pub peers: Vec<Figure>,
    /// homenode's typical time over the best peer's typical time.
    pub typical_ratio: f64,
    /// homenode's fastest time over the best peer's fastest time.
    pub fastest_ratio: f64,
    /// The highest ratio allowed in this row, if it has a bar.
    pub bar: Option<f64>,
}

/// The whole comparison.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Rounds measured.
    pub rounds: u32,
    /// The CPU measured on.
    pub cpu: u32,
    /// The rows.
    pub rows: Vec<Row>,
    /// What else the machine did.
    pub load: Load,
}

impl Figure {
    fn of(name: &str, samples: &Samples) -> Self {
        Self {
            name: name.into(),
            fastest: minimum(&samples.min),
            typical: median(&samples.p25),
            spread: interquartile_range(&samples.p25),
        }
    }
}

impl Row {
    fn new(row: &str, homenode: Figure, peers: Vec<Figure>) -> Self {
        let best = |of: fn(&Figure) -> f64| peers.iter().map(of).fold(f64::INFINITY, f64::min);
        Self {
            row: row.into(),
            typical_ratio: homenode.typical / best(|f| f.typical),
            fastest_ratio: homenode.fastest / best(|f| f.fastest),
            bar: BAR_ROWS.contains(&row).then_some(BAR),
            homenode,
            peers,
        }
    }

    /// The lower of the two ratios: foreign load raises a median, a lucky chunk lowers a minimum,
    /// and a real loss raises both.
    fn ratio(&self) -> f64 {
        self.typical_ratio.min(self.fastest_ratio)
    }

    fn verdict(&self) -> &'static str {
        match self.bar {
            None => "",
            Some(bar) if self.ratio() > bar => "ABOVE THE BAR",
            Some(_) if self.ratio() > 1.0 => "tie",
            Some(_) => "ok",
        }
    }

    fn cells(&self) -> Vec<String> {
        let own = &self.homenode;
        let mut cells = vec![
            self.row.clone(),
            format!("{:.2}", own.typical),
            format!("{:.2}", own.spread),
            format!("{:.2}", own.fastest),
        ];
        for peer in &self.peers {
            cells.push(format!("{:.2} x{:.2}", peer.typical, own.typical / peer.typical));
        }
        cells.push(format!("{:.2}", self.typical_ratio));
        cells.push(format!("{:.2}", self.fastest_ratio));
        cells.push(self.verdict().into());
        cells
    }
}

impl Report {
    /// Draws the report up; `names` are the entries' names, homenode's first.
    #[must_use]
    pub fn new(names: &[String], rounds: u32, measured: Rounds) -> Self {
        let figure =
            |entry: usize, row: usize| Figure::of(&names[entry], &measured.samples[entry][row]);
        let rows = measured.rows.iter().enumerate().map(|(row, name)| {
            let peers = (1..names.len()).map(|entry| figure(entry, row)).collect();
            Row::new(name, figure(0, row), peers)
        });
        Self { rounds, cpu: measured.cpu, rows: rows.collect(), load: measured.load }
    }

    /// Whether rows with a bar were measured, and all are within it.
    #[must_use]
    pub fn within_bar(&self) -> bool {
        let mut barred = self.rows.iter().filter(|r| r.bar.is_some()).peekable();
        barred.peek().is_some() && barred.all(|row| row.verdict() != "ABOVE THE BAR")
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut heading = vec!["row".into(), format!("{HOMENODE} ns"), "IQR".into(), "min".into()];
        if let Some(row) = self.rows.first() {
            heading.extend(row.peers.iter().map(|p| format!("{} ns x", p.name)));
        }
        heading.extend(["x best", "x best min", "verdict"].map(String::from));
        let mut table = Table::new(heading);
        for row in &self.rows {
            table.push(row.cells());
        }
        format!(
            "{table}\nns per malloc+free, median of {} rounds on CPU {}; x: {HOMENODE}'s time over \
             the peer's, below 1 is faster; bar: x best (median or minimum) at most {BAR}\n{}\n",
            self.rounds,
            self.cpu,
            self.load.line()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(fastest: f64, typical: f64) -> Figure {
        Figure { name: "any".into(), fastest, typical, spread: 0.0 }
    }

    fn row(name: &str, own: Figure) -> Row {
        Row::new(name, own, vec![figure(5.0, 6.0), figure(4.0, 8.0)])
    }

    #[test]
    fn each_ratio_is_to_the_best_peer_of_that_ratio() {
        let row = row("mixed", figure(2.0, 3.0));
        assert_eq!((row.fastest_ratio, row.typical_ratio), (0.5, 0.5));
    }

    #[test]
    fn a_small_pair_fails_only_when_both_ratios_do() {
        assert_eq!(row("pair 16 B", figure(4.2, 6.3)).verdict(), "ABOVE THE BAR");
        assert_eq!(row("pair 16 B", figure(4.2, 6.1)).verdict(), "tie");
        assert_eq!(row("pair 16 B", figure(3.9, 6.6)).verdict(), "ok");
    }

    #[test]
    fn other_rows_have_no_bar() {
        assert_eq!(row("pair 64 KiB", figure(40.0, 60.0)).verdict(), "");
    }

    #[test]
    fn a_check_that_measured_no_barred_row_fails() {
        let load = crate::load::Before::now().until_now(0);
        let rows = vec![row("mixed", figure(1.0, 1.0))];
        let mut report = Report { rounds: 1, cpu: 0, rows, load };
        assert!(!report.within_bar());
        report.rows.push(row("pair 64 B", figure(1.0, 1.0)));
        assert!(report.within_bar());
    }
}
