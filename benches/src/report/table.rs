//! A Markdown table, and the format of numbers in its cells.

use std::fmt::Write;

/// A cell without a value.
pub(crate) const NONE: &str = "–";

/// A table that grows by rows.
#[derive(Debug)]
pub(crate) struct Table {
    /// Markdown so far.
    pub(crate) text: String,
}

impl Table {
    /// Returns a table without rows. The first column holds text, the others numbers.
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

/// Formats a number with this many decimals, or [`NONE`].
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

pub(crate) fn whole(value: Option<f64>) -> String {
    number(value, 0)
}
