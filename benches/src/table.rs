//! Text tables: the first column to the left, all others to the right.

use std::fmt;

/// Rows of text cells under a heading.
#[derive(Debug, Clone)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with this heading.
    pub fn new(heading: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![heading.into_iter().map(Into::into).collect()] }
    }

    /// Appends a row; missing cells at its end stay empty.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["row", "ns"]);
        table.push(vec!["pair 16 B".into(), "2.8".into()]);
        table.push(vec!["mixed".into(), "13.96".into()]);
        assert_eq!(table.to_string(), "row           ns\npair 16 B    2.8\nmixed      13.96\n");
    }

    #[test]
    fn a_short_row_ends_without_blanks() {
        let mut table = Table::new(["row", "verdict"]);
        table.push(vec!["x".into(), String::new()]);
        assert_eq!(table.to_string(), "row  verdict\nx\n");
    }
}
