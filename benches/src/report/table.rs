//! A table of Markdown, and numbers as they stand in its cells.

use std::fmt::Write;

/// A cell without a value.
pub(crate) const NONE: &str = "–";

/// A table that grows by rows.
#[derive(Debug)]
pub(crate) struct Table {
    /// So far.
    pub(crate) text: String,
}

impl Table {
    /// Only the names of its columns; the first column holds text, the others numbers.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let numbers = "---:|".repeat(columns.len().saturating_sub(1));
        Self {
            text: format!("| {} |\n|---|{numbers}\n", columns.join(" | ")),
        }
    }

    /// One more row.
    pub(crate) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }
}

/// A number with this many digits behind the point.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

/// A whole number.
pub(crate) fn whole(value: Option<f64>) -> String {
    number(value, 0)
}
