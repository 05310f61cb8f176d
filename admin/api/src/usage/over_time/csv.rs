//! A usage report as a CSV file, with exact amounts.

use super::sums::{UsageRow, UsageSums};
use crate::spreadsheet::{lines, optional};
use bytes::Bytes;
use endpoint::Problem;
use futures::{Stream, stream};
use store::names::Names;

/// Number of rows that are written at a time.
const CHUNK: usize = 500;

/// Makes the cell of a row.
pub(crate) type UsageCell = fn(&UsageRow<'_>) -> String;

/// Header names in the order of the exported columns, each with the function that writes its cell.
pub(crate) const COLUMNS: [(&str, UsageCell); 10] = [
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

/// The rows, some hundred in each chunk. An error is the last item.
pub(super) fn chunks(
    sums: UsageSums,
    names: Names,
) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'static {
    let begin = (sums.sorted().into_iter(), names);
    stream::try_unfold(begin, |(mut sorted, names)| async move {
        let rows: Vec<_> = sorted.by_ref().take(CHUNK).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let cells = rows.iter().map(|((at_ms, group), amounts)| {
            let row = UsageRow::new(*at_ms, group.as_deref(), *amounts, &names);
            COLUMNS.map(|(_, cell)| cell(&row))
        });
        Ok(Some((Bytes::from(lines(cells)?), (sorted, names))))
    })
}
