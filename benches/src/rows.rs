//! The rows: what is measured, by which program, and the bar of each.
//!
//! A bar limits homenode's figure by its peers' figures in the same row of the same run.

/// What measures a row: a C program of `drivers/`, started under a preload, or `churn/`, built with
/// a global allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Pairs of malloc and free.
    Pair,
    /// Many objects alive.
    Batch,
    /// calloc, aligned blocks, realloc.
    Shape,
    /// Several threads.
    Threads,
    /// The start of a small program.
    Startup,
    /// Resident memory.
    Resident,
    /// Rust's collections, by cargo's default release profile.
    Rust,
    /// The same with thin link-time optimisation.
    RustThin,
}

impl Program {
    /// All programs, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::Pair,
        Self::Batch,
        Self::Shape,
        Self::Threads,
        Self::Startup,
        Self::Resident,
        Self::Rust,
        Self::RustThin,
    ];

    /// The program's name, also that of its C source.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Batch => "batch",
            Self::Shape => "shape",
            Self::Threads => "threads",
            Self::Startup => "startup",
            Self::Resident => "resident",
            Self::Rust => "rust",
            Self::RustThin => "rust-thin",
        }
    }

    /// Whether it is a Rust program, which no preload changes.
    #[must_use]
    pub fn is_rust(self) -> bool {
        matches!(self, Self::Rust | Self::RustThin)
    }

    /// Whether it measures one thread on one CPU: the rows of `bench pair`.
    #[must_use]
    pub fn is_one_thread(self) -> bool {
        matches!(self, Self::Pair | Self::Batch)
    }
}

/// What homenode's figure may be at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// So many times the best peer's.
    Best(f64),
    /// So many times that peer's, where it was measured.
    Peer(&'static str, f64),
    /// Below the best peer's by so much of plain glibc's.
    BelowBest(f64),
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What measures it.
    pub program: Program,
    /// What its figures count.
    pub unit: &'static str,
    /// Its bar: the strictest of these; empty where there is none.
    pub limits: &'static [Limit],
}

const SMALL: &[Limit] = &[Limit::Best(0.95)];
const MEDIUM: &[Limit] = &[Limit::Best(0.97)];
const HUGE: &[Limit] = &[Limit::Best(1.10), Limit::Peer("tcmalloc", 1.0)];
const BATCH_64: &[Limit] = &[Limit::Best(0.85)];
const MIXED: &[Limit] = &[Limit::Best(0.90)];
const SHAPED: &[Limit] = &[Limit::Best(1.05)];
const GROWN_ALONE: &[Limit] = &[Limit::Peer("jemalloc", 1.2)];
const HANDED: &[Limit] = &[Limit::Best(1.10)];
const EVEN: &[Limit] = &[Limit::Best(1.00)];
const START: &[Limit] = &[Limit::Peer("glibc", 1.15), Limit::BelowBest(0.05)];
const NONE: &[Limit] = &[];

const fn row(
    name: &'static str,
    program: Program,
    unit: &'static str,
    limits: &'static [Limit],
) -> Row {
    Row { name, program, unit, limits }
}

/// All rows, in the order of the table.
pub const ROWS: &[Row] = &[
    row("pair 16 B", Program::Pair, "ns", SMALL),
    row("pair 64 B", Program::Pair, "ns", SMALL),
    row("pair 256 B", Program::Pair, "ns", SMALL),
    row("pair 1 KiB", Program::Pair, "ns", SMALL),
    row("pair 8 KiB", Program::Pair, "ns", MEDIUM),
    row("pair 64 KiB", Program::Pair, "ns", MEDIUM),
    row("pair 256 KiB", Program::Pair, "ns", MEDIUM),
    row("pair 1 MiB", Program::Pair, "ns", HUGE),
    row("pair 4 MiB", Program::Pair, "ns", HUGE),
    row("pair 64 MiB untouched", Program::Pair, "ns", HUGE),
    row("lifo 64 B", Program::Batch, "ns", BATCH_64),
    row("fifo 64 B", Program::Batch, "ns", BATCH_64),
    row("random 64 B", Program::Batch, "ns", BATCH_64),
    row("lifo 1 KiB", Program::Batch, "ns", EVEN),
    row("fifo 1 KiB", Program::Batch, "ns", EVEN),
    row("random 1 KiB", Program::Batch, "ns", EVEN),
    row("lifo 16 KiB", Program::Batch, "ns", EVEN),
    row("fifo 16 KiB", Program::Batch, "ns", EVEN),
    row("random 16 KiB", Program::Batch, "ns", EVEN),
    row("mixed", Program::Batch, "ns", MIXED),
    row("calloc 64 B", Program::Shape, "ns", SHAPED),
    row("aligned 64 B", Program::Shape, "ns", SHAPED),
    row("aligned 4 KiB", Program::Shape, "ns", SHAPED),
    row("grow alone", Program::Shape, "ns", GROWN_ALONE),
    row("grow four", Program::Shape, "ns", EVEN),
    row("handed over 64 B", Program::Threads, "ns", HANDED),
    row("handed over 1 KiB", Program::Threads, "ns", HANDED),
    row("handed over 16 KiB", Program::Threads, "ns", HANDED),
    row("2 threads", Program::Threads, "ns", EVEN),
    row("16 threads", Program::Threads, "ns", EVEN),
    row("4 threads all to all", Program::Threads, "ns", HANDED),
    row("moving thread", Program::Threads, "ns", HANDED),
    row("thread start and end", Program::Threads, "us", NONE),
    row("start of /bin/true", Program::Startup, "us", START),
    row("resident of 200 threads", Program::Resident, "MiB", EVEN),
    row("rust Box", Program::Rust, "ns", EVEN),
    row("rust Vec", Program::Rust, "ns", EVEN),
    row("rust String", Program::Rust, "ns", EVEN),
    row("rust HashMap", Program::Rust, "ns", EVEN),
    row("rust BTreeMap", Program::Rust, "ns", EVEN),
    row("rust thin Box", Program::RustThin, "ns", EVEN),
    row("rust thin Vec", Program::RustThin, "ns", EVEN),
    row("rust thin String", Program::RustThin, "ns", EVEN),
    row("rust thin HashMap", Program::RustThin, "ns", EVEN),
    row("rust thin BTreeMap", Program::RustThin, "ns", EVEN),
];

/// The rows whose name contains one of the comma-separated `parts` (empty: all), among those that
/// `wanted` lets through.
#[must_use]
pub fn selected(parts: &str, wanted: impl Fn(&Row) -> bool) -> Vec<Row> {
    let named = |row: &&Row| parts.split(',').any(|part| row.name.contains(part.trim()));
    ROWS.iter().filter(named).filter(|row| wanted(row)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::source;

    #[test]
    fn every_row_is_in_the_table_of_its_driver() {
        const CHURN: &str = include_str!("../churn/src/rows.rs");
        for row in ROWS {
            let name = row.name.split(' ').next_back().unwrap();
            match source(row.program) {
                Some(text) => {
                    assert!(text.contains(&format!("    {{\"{}\", ", row.name)), "{row:?}")
                }
                None => assert!(CHURN.contains(&format!("    (\"{name}\", ")), "{row:?}"),
            }
        }
    }

    #[test]
    fn parts_are_alternatives() {
        let names = |parts| selected(parts, |_| true).iter().map(|r| r.name).collect::<Vec<_>>();
        assert_eq!(names("16 KiB, mixed").len(), 5);
        assert_eq!(names("").len(), ROWS.len());
        assert!(names("no such row").is_empty());
    }

    #[test]
    fn the_rows_of_a_program_stand_together() {
        let mut programs: Vec<Program> = ROWS.iter().map(|row| row.program).collect();
        programs.dedup();
        assert_eq!(programs, Program::ALL);
    }
}
