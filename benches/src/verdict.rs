//! homenode against its peers: ratios, and whether each row is within its bar.

use crate::contestant::{Contestant, GLIBC, HOMENODE, Malloc, Role};
use crate::load::Load;
use crate::rounds::{Rounds, Samples};
use crate::rows::{self, Limit};
use crate::stats::{interquartile_range, median, minimum};
use crate::table::Table;
use serde::Serialize;
use std::path::PathBuf;

/// A row is above its bar when it is so many times above: 3 % is a tie.
pub const TIE: f64 = 1.03;

/// One contestant in one row, in the row's unit.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Who.
    pub name: String,
    /// The lowest chunk of all rounds.
    pub fastest: f64,
    /// The median over rounds of the chunks' lower quartile.
    pub typical: f64,
    /// The interquartile range over rounds of the chunks' lower quartile.
    pub spread: f64,
}

/// homenode, in one setting, against the peers.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Its figure.
    pub figure: Figure,
    /// Its typical figure over the best peer's typical figure.
    pub typical_ratio: f64,
    /// Its lowest figure over the best peer's lowest figure.
    pub fastest_ratio: f64,
    /// Its figure over what the bar allows, if there is one.
    pub of_bar: Option<f64>,
    /// What follows.
    pub verdict: &'static str,
}

/// One row.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The row's name.
    pub row: &'static str,
    /// What measures it.
    pub program: &'static str,
    /// What its figures count.
    pub unit: &'static str,
    /// The peer with the best typical figure.
    pub best: String,
    /// What the bar allows, as a multiple of the best peer's typical figure.
    pub bar: Option<f64>,
    /// homenode: as it is, then in its other settings.
    pub own: Vec<Judged>,
    /// The peers' figures, and those of references.
    pub others: Vec<Figure>,
}

/// The whole comparison.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Rounds measured.
    pub rounds: u32,
    /// The CPU that the rows of one thread ran on.
    pub cpu: u32,
    /// The rows.
    pub rows: Vec<Row>,
    /// The contestants' names, and the libraries that they preloaded.
    pub libraries: Vec<(String, PathBuf)>,
    /// Peers that failed, and how.
    pub failures: Vec<String>,
    /// What else the machine did.
    pub load: Load,
}

type Estimate = fn(&Figure) -> f64;
const TYPICAL: Estimate = |figure| figure.typical;
const FASTEST: Estimate = |figure| figure.fastest;

impl Figure {
    fn of(name: &str, samples: &Samples) -> Option<Self> {
        (!samples.p25.is_empty()).then(|| Self {
            name: name.into(),
            fastest: minimum(&samples.min),
            typical: median(&samples.p25),
            spread: interquartile_range(&samples.p25),
        })
    }
}

/// The peers of one row and its limits.
struct Field<'a> {
    limits: &'a [Limit],
    peers: &'a [Figure],
}

impl Field<'_> {
    /// Where a limit speaks of plain glibc, the best peer is the best of the others.
    fn best(&self, of: Estimate) -> Option<&Figure> {
        let plain = self.limits.iter().any(|limit| matches!(limit, Limit::BelowBest(_)));
        let peers = self.peers.iter().filter(|peer| !plain || peer.name != GLIBC);
        peers.min_by(|a, b| of(a).total_cmp(&of(b)))
    }

    fn peer(&self, name: &str, of: Estimate) -> Option<f64> {
        self.peers.iter().find(|peer| peer.name == name).map(of)
    }

    /// The highest figure within all limits; none when nothing limits it.
    fn allowed(&self, of: Estimate) -> Option<f64> {
        let best = self.best(of).map(of);
        let allowed = |limit: &Limit| match *limit {
            Limit::Best(times) => best.map(|best| times * best),
            Limit::Peer(name, times) => self.peer(name, of).map(|peer| times * peer),
            Limit::BelowBest(share) => Some(best? - share * self.peer(GLIBC, of)?),
        };
        self.limits.iter().filter_map(allowed).min_by(f64::total_cmp)
    }

    /// The lower of two ratios counts: foreign load raises a median, a lucky chunk lowers a
    /// minimum, and a real loss raises both.
    fn judge(&self, figure: Figure) -> Judged {
        let ratio = |of: Estimate| of(&figure) / self.best(of).map_or(f64::NAN, of);
        let of_allowed = |of: Estimate| Some(of(&figure) / self.allowed(of)?);
        let of_bar = of_allowed(TYPICAL).zip(of_allowed(FASTEST)).map(|(a, b)| a.min(b));
        let verdict = match of_bar {
            None => "",
            Some(of_bar) if of_bar > TIE => "ABOVE",
            Some(of_bar) if of_bar > 1.0 => "tie",
            Some(_) => "ok",
        };
        let (typical_ratio, fastest_ratio) = (ratio(TYPICAL), ratio(FASTEST));
        Judged { typical_ratio, fastest_ratio, of_bar, verdict, figure }
    }
}

impl Row {
    fn new(row: &rows::Row, figures: Vec<(Role, Figure)>) -> Self {
        let (mut own, mut peers, mut references) = (Vec::new(), Vec::new(), Vec::new());
        for (role, figure) in figures {
            match role {
                Role::Own | Role::Variant => own.push(figure),
                Role::Peer => peers.push(figure),
                Role::Reference => references.push(figure),
            }
        }
        let field = Field { limits: row.limits, peers: &peers };
        let best = field.best(TYPICAL);
        let own = own.into_iter().map(|figure| field.judge(figure)).collect();
        let bar = best.zip(field.allowed(TYPICAL)).map(|(best, allowed)| allowed / best.typical);
        let best = best.map_or_else(String::new, |best| best.name.clone());
        peers.append(&mut references);
        let program = row.program.name();
        Self { row: row.name, program, unit: row.unit, best, bar, own, others: peers }
    }

    fn verdict_cells(&self) -> Vec<String> {
        let mut cells = vec![self.row.into(), self.unit.into()];
        for own in &self.own {
            let Figure { typical, spread, fastest, .. } = own.figure;
            cells.extend([typical, spread, fastest].map(number));
            cells.extend([own.typical_ratio, own.fastest_ratio].map(|r| format!("{r:.2}")));
            cells.push(own.verdict.into());
        }
        cells.push(self.bar.map_or_else(String::new, |bar| format!("{bar:.2}")));
        cells.push(self.best.clone());
        cells
    }

    fn figure_cells(&self, names: &[String]) -> Vec<String> {
        let mut cells = vec![self.row.into()];
        for name in names {
            let figure = self.others.iter().find(|figure| figure.name == *name);
            cells.push(figure.map_or_else(String::new, |f| number(f.typical)));
            cells.push(figure.map_or_else(String::new, |f| number(f.spread)));
        }
        cells
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

impl Report {
    /// Draws the report up; `contestants` are those of the entries.
    #[must_use]
    pub fn new(contestants: &[Contestant], rounds: u32, measured: Rounds) -> Self {
        let figures = |row: usize| {
            let figure = |(contestant, samples): (&Contestant, &Vec<Samples>)| {
                Some((contestant.role, Figure::of(&contestant.name, &samples[row])?))
            };
            contestants.iter().zip(&measured.samples).filter_map(figure).collect()
        };
        let rows = measured.rows.iter().enumerate().map(|(i, row)| Row::new(row, figures(i)));
        let rows = rows.collect();
        let Rounds { cpu, failures, load, .. } = measured;
        let library = |contestant: &Contestant| match &contestant.malloc {
            Malloc::Preload(path) => Some((contestant.name.clone(), path.clone())),
            Malloc::Libc | Malloc::None => None,
        };
        let libraries = contestants.iter().filter_map(library).collect();
        Self { rounds, cpu, rows, libraries, failures, load }
    }

    /// Whether rows with a bar were measured, and all are within it in every setting.
    #[must_use]
    pub fn within_bar(&self) -> bool {
        let mut barred = self.rows.iter().filter(|row| row.bar.is_some()).peekable();
        let within = |row: &Row| row.own.iter().all(|own| own.verdict != "ABOVE");
        barred.peek().is_some() && barred.all(within)
    }

    /// The names of all others, in the order of the contestants.
    #[must_use]
    pub fn others(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for figure in self.rows.iter().flat_map(|row| &row.others) {
            if !names.contains(&figure.name) {
                names.push(figure.name.clone());
            }
        }
        names
    }

    /// homenode's figures, ratios and verdicts.
    fn verdicts(&self) -> Table {
        let mut heading: Vec<String> = ["row", "unit"].map(String::from).to_vec();
        if let Some(row) = self.rows.first() {
            for own in &row.own {
                heading.push(own.figure.name.clone());
                heading.extend(["IQR", "min", "x best", "x best min", ""].map(String::from));
            }
        }
        heading.extend(["bar", "best peer"].map(String::from));
        let mut table = Table::new(heading);
        for row in &self.rows {
            table.push(row.verdict_cells());
        }
        table
    }

    /// The others' figures and spreads.
    fn figures(&self) -> Table {
        let names = self.others();
        let heading = names.iter().flat_map(|name| [name.clone(), "IQR".into()]);
        let mut table = Table::new(std::iter::once(String::from("row")).chain(heading));
        for row in &self.rows {
            table.push(row.figure_cells(&names));
        }
        table
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let failures: String = self.failures.iter().map(|f| format!("failed: {f}\n")).collect();
        let libraries: String = self
            .libraries
            .iter()
            .map(|(name, path)| format!("{name}: {}\n", path.display()))
            .collect();
        format!(
            "{}\n{}\nmedians of {} rounds, one thread on CPU {}; x best: {HOMENODE} over the best \
             peer, below 1 is better;\nABOVE: median and minimum are both over {TIE} x the bar\n\
             {libraries}{failures}{}\n",
            self.verdicts(),
            self.figures(),
            self.rounds,
            self.cpu,
            self.load.line()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Program, ROWS};

    fn figure(name: &str, fastest: f64, typical: f64) -> Figure {
        Figure { name: name.into(), fastest, typical, spread: 0.0 }
    }

    fn row(limits: &'static [Limit], own: (f64, f64)) -> Row {
        let row = rows::Row { name: "a row", program: Program::Pair, unit: "ns", limits };
        Row::new(
            &row,
            vec![
                (Role::Own, figure(HOMENODE, own.0, own.1)),
                (Role::Peer, figure(GLIBC, 5.0, 6.0)),
                (Role::Peer, figure("tcmalloc", 4.0, 8.0)),
                (Role::Reference, figure("empty", 1.0, 1.0)),
            ],
        )
    }

    fn verdict(limits: &'static [Limit], own: (f64, f64)) -> &'static str {
        row(limits, own).own[0].verdict
    }

    #[test]
    fn each_ratio_is_to_the_best_peer_of_that_ratio() {
        let row = row(&[], (2.0, 3.0));
        assert_eq!((row.own[0].fastest_ratio, row.own[0].typical_ratio), (0.5, 0.5));
        assert_eq!(row.best, GLIBC);
    }

    #[test]
    fn a_row_is_above_only_when_both_ratios_are() {
        const EVEN: &[Limit] = &[Limit::Best(1.0)];
        assert_eq!(verdict(EVEN, (4.2, 6.3)), "ABOVE");
        assert_eq!(verdict(EVEN, (4.2, 6.1)), "tie");
        assert_eq!(verdict(EVEN, (3.9, 6.6)), "ok");
    }

    #[test]
    fn the_strictest_limit_counts() {
        const BOTH: &[Limit] = &[Limit::Best(1.1), Limit::Peer("tcmalloc", 0.5)];
        assert_eq!(verdict(BOTH, (4.0, 6.0)), "ABOVE");
        assert_eq!(verdict(&BOTH[..1], (4.0, 6.0)), "ok");
    }

    #[test]
    fn a_limit_of_a_peer_that_is_not_there_is_none() {
        const ABSENT: &[Limit] = &[Limit::Peer("jemalloc", 1.0)];
        assert_eq!(verdict(ABSENT, (9.0, 9.0)), "");
    }

    #[test]
    fn where_plain_glibc_is_the_measure_the_best_peer_is_another() {
        const START: &[Limit] = &[Limit::BelowBest(0.1)];
        assert_eq!(row(START, (3.5, 7.4)).best, "tcmalloc");
        assert_eq!(verdict(START, (3.5, 7.4)), "ok");
        assert_eq!(verdict(START, (3.9, 7.8)), "ABOVE");
    }

    #[test]
    fn a_check_that_measured_no_barred_row_fails() {
        let load = crate::load::Before::now().until_now(0);
        let rows = vec![row(&[], (1.0, 1.0))];
        let (libraries, failures) = (Vec::new(), Vec::new());
        let mut report = Report { rounds: 1, cpu: 0, rows, libraries, failures, load };
        assert!(!report.within_bar());
        report.rows.push(row(ROWS[0].limits, (1.0, 1.0)));
        assert!(report.within_bar());
    }
}
