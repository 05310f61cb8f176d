//! A table of Markdown, and the form of numbers in its cells.

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

    pub(crate) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }
}

/// A number with this many digits behind the point.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

pub(crate) fn whole(value: Option<f64>) -> String {
    number(value, 0)
}
