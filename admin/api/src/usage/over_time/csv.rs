//! A usage report as a CSV file, with exact amounts.

use super::sums::UsageRow;
use crate::spreadsheet::lines;
use endpoint::Problem;

/// The columns.
pub(crate) const COLUMNS: [&str; 10] = [
    "at",
    "group",
    "name",
    "calls",
    "denied",
    "inputTokens",
    "cachedTokens",
    "outputTokens",
    "unmeasured",
    "costUsd",
];

/// Returns header and rows.
///
/// # Errors
/// 500 if it cannot be written.
pub(super) fn write(rows: &[UsageRow<'_>]) -> Result<Vec<u8>, Problem> {
    let header = COLUMNS.map(str::to_owned);
    let rows = rows.iter().map(|row| {
        let amounts = row.amounts;
        let counts = [
            amounts.calls,
            amounts.denied,
            amounts.input_tokens,
            amounts.cached_tokens,
            amounts.output_tokens,
            amounts.unmeasured,
        ];
        let [calls, denied, input, cached, output, unmeasured] = counts.map(|count| count.to_string());
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let cost = amounts.cost_usd.to_string();
        let (group, name) = (text(row.group), text(row.name));
        [
            row.at.clone(),
            group,
            name,
            calls,
            denied,
            input,
            cached,
            output,
            unmeasured,
            cost,
        ]
    });
    lines(std::iter::once(header).chain(rows))
}
