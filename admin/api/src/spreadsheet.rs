//! CSV files (RFC 4180) of which a spreadsheet executes no cell.

use endpoint::problem::{Code, Problem};
use std::borrow::Cow;

/// The type of the files.
pub(crate) const CONTENT_TYPE: &str = "text/csv; charset=utf-8";

/// Writes rows of cells, each row ended by CR LF.
///
/// # Errors
/// 500 when it cannot be written.
pub(crate) fn lines<const N: usize>(
    rows: impl IntoIterator<Item = [impl AsRef<str>; N]>,
) -> Result<Vec<u8>, Problem> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    let written: csv::Result<()> = rows.into_iter().try_for_each(|row| {
        let cells = row.each_ref().map(|cell| harmless(cell.as_ref()));
        writer.write_record(cells.each_ref().map(|cell| cell.as_bytes()))
    });
    let failed = |error: &dyn std::error::Error| {
        tracing::error!(%error, "a CSV file cannot be written");
        Problem::from(Code::Internal)
    };
    written.map_err(|error| failed(&error))?;
    writer.into_inner().map_err(|error| failed(&error))
}

/// A cell that no spreadsheet takes for a formula.
fn harmless(cell: &str) -> Cow<'_, str> {
    match cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => Cow::Owned(format!("'{cell}")),
        false => Cow::Borrowed(cell),
    }
}
