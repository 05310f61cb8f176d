//! A usage report as a CSV file, with exact amounts.

use super::sums::UsageRow;
use crate::spreadsheet::{lines, names, optional};
use endpoint::Problem;

/// Makes the cell of a row.
pub(crate) type Cell = fn(&UsageRow<'_>) -> String;

/// Header names in the order of the exported columns, each with the function that writes its cell.
pub(crate) const COLUMNS: [(&str, Cell); 10] = [
    ("at", |row| row.at.clone()),
    ("group", |row| optional(row.group)),
    ("name", |row| optional(row.name)),
    ("calls", |row| row.amounts.calls.to_string()),
    ("denied", |row| row.amounts.denied.to_string()),
    ("inputTokens", |row| row.amounts.input_tokens.to_string()),
    ("cachedTokens", |row| row.amounts.cached_tokens.to_string()),
    ("outputTokens", |row| row.amounts.output_tokens.to_string()),
    ("unmeasured", |row| row.amounts.unmeasured.to_string()),
    ("costUsd", |row| row.amounts.cost_usd.to_string()),
];

/// Returns header and rows.
///
/// # Errors
/// 500 if it cannot be written.
pub(super) fn write(rows: &[UsageRow<'_>]) -> Result<Vec<u8>, Problem> {
    let header = names(&COLUMNS).map(str::to_owned);
    let rows = rows.iter().map(|row| COLUMNS.map(|(_, cell)| cell(row)));
    lines(std::iter::once(header).chain(rows))
}
