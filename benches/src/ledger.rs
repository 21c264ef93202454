//! The kept instruction counts of the hit paths: their file, and how a build differs from it.

use crate::error::{Error, Result};
use crate::hitpath::HitPath;
use crate::table::Table;
use std::collections::BTreeMap;

/// The entries whose hit paths are kept. `calloc` is not among them: it clears, by a call.
pub const ENTRIES: [&str; 14] = [
    "malloc",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "_Znwm",
    "_Znam",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "memalign",
    "__libc_malloc",
    "__libc_free",
    "__libc_memalign",
];

const HEADING: [&str; 5] = ["#symbol", "instructions", "memory", "thread", "branches"];

/// The counts that the file keeps: instructions, memory, thread, branches.
type Counts = [u32; 4];

/// Counts by symbol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    lines: BTreeMap<String, Counts>,
}

impl Ledger {
    /// Enters the hit path of `symbol`.
    pub fn enter(&mut self, symbol: &str, path: HitPath) {
        let counts = [path.instructions, path.memory, path.thread, path.branches];
        self.lines.insert(symbol.into(), counts);
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// When a line is not a symbol and four numbers.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let Some(symbol) = words.next() else { continue };
            let numbers: Vec<u32> = words.filter_map(|word| word.parse().ok()).collect();
            let counts = numbers.try_into().map_err(|_| Error::Ledger(line.into()))?;
            lines.insert(symbol.into(), counts);
        }
        Ok(Self { lines })
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new(HEADING);
        for (symbol, counts) in &self.lines {
            let numbers = counts.iter().map(u32::to_string);
            table.push([symbol.clone()].into_iter().chain(numbers).collect());
        }
        table.to_string()
    }

    /// How `built` differs from this, a line a difference; none when it does not.
    #[must_use]
    pub fn differences(&self, built: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (symbol, kept) in &self.lines {
            match built.lines.get(symbol) {
                Some(now) => found.extend(compare(symbol, kept, now)),
                None => found.push(format!("{symbol}: kept, but the library does not export it")),
            }
        }
        for symbol in built.lines.keys().filter(|symbol| !self.lines.contains_key(*symbol)) {
            found.push(format!("{symbol}: not in the file, update it with --write"));
        }
        found
    }
}

fn compare(symbol: &str, kept: &Counts, now: &Counts) -> Vec<String> {
    let each = HEADING[1..].iter().zip(kept.iter().zip(now));
    each.filter(|(_, (kept, now))| kept != now)
        .map(|(what, (kept, now))| {
            let advice = if now > kept {
                "more than kept: a regression"
            } else {
                "fewer than kept: update the file with --write"
            };
            format!("{symbol}: {what} {kept} -> {now}, {advice}")
        })
        .collect()
}

/// What no hit path may contain, a line a fault.
#[must_use]
pub fn faults(symbol: &str, path: HitPath) -> Vec<String> {
    [(path.locked, "locked instructions"), (path.calls, "calls"), (path.syscalls, "system calls")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{symbol}: {count} {what} on its hit path, 0 allowed"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(instructions: u32, memory: u32) -> HitPath {
        HitPath { instructions, memory, thread: 2, branches: 2, ..HitPath::default() }
    }

    fn ledger(entries: &[(&str, HitPath)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (symbol, path) in entries {
            ledger.enter(symbol, *path);
        }
        ledger
    }

    #[test]
    fn the_file_reads_back() {
        let kept = ledger(&[("malloc", path(18, 9)), ("free", path(19, 10))]);
        assert_eq!(Ledger::parse(&kept.text()).unwrap(), kept);
        assert!(kept.differences(&kept).is_empty());
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = Ledger::parse("malloc 18 9\n").unwrap_err().to_string();
        assert!(error.contains("`malloc 18 9`"));
    }

    #[test]
    fn both_directions_are_differences() {
        let kept = ledger(&[("malloc", path(18, 9))]);
        assert_eq!(
            kept.differences(&ledger(&[("malloc", path(19, 9))])),
            ["malloc: instructions 18 -> 19, more than kept: a regression"]
        );
        assert_eq!(
            kept.differences(&ledger(&[("malloc", path(18, 8))])),
            ["malloc: memory 9 -> 8, fewer than kept: update the file with --write"]
        );
    }

    #[test]
    fn lost_and_new_entries_are_differences() {
        let kept = ledger(&[("malloc", path(18, 9))]);
        let built = ledger(&[("free", path(19, 10))]);
        let found = kept.differences(&built);
        assert!(found[0].starts_with("malloc: kept, but"));
        assert!(found[1].starts_with("free: not in the file"));
    }

    #[test]
    fn a_lock_on_a_hit_path_is_a_fault() {
        assert!(faults("malloc", path(18, 9)).is_empty());
        let locked = HitPath { locked: 1, ..path(18, 9) };
        assert_eq!(faults("malloc", locked).len(), 1);
    }
}
