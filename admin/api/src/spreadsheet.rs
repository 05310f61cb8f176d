//! CSV files (RFC 4180) with cells that no spreadsheet executes as formulas.

use crate::state::Call;
use bytes::Bytes;
use domain::printable;
use endpoint::problem::{Code, Problem};
use endpoint::{Answer, LargeRead, Reply};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use std::borrow::Cow;

/// First characters of formulas, including their full-width and small forms.
const FORMULA: [char; 12] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\u{fe66}', '\u{fe62}', '\u{fe63}',
    '\u{fe6b}',
];
/// Ends of a cell for readers with another separator than the comma, and ends of a row.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// The type of the files.
pub(crate) const CONTENT_TYPE: &str = "text/csv; charset=utf-8";

/// Returns the names of columns, each of which is a name and the function for its cell of a row.
pub(crate) fn names<C, const N: usize>(columns: &[(&'static str, C); N]) -> [&'static str; N] {
    columns.each_ref().map(|(name, _)| *name)
}

/// Returns the first row of a file with these columns.
pub(crate) fn header<C, const N: usize>(columns: &[(&'static str, C); N]) -> String {
    names(columns).join(",") + "\r\n"
}

/// Returns a cell that is empty where there is no value.
pub(crate) fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Writes rows of cells. Each row ends with CR LF.
///
/// # Errors
/// 500 if they cannot be written.
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

/// The rows of a file that is being sent cannot be read.
#[derive(Debug)]
struct CutOff;

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the records cannot be read")
    }
}

impl std::error::Error for CutOff {}

/// A file of records of an account and mode.
pub(crate) struct CsvFile {
    /// Word for the records in the name and in the log.
    records: &'static str,
    account: String,
    name: String,
}

impl CsvFile {
    /// Creates the file for a call, which is not needed any more.
    pub(crate) fn new(call: &Call, records: &'static str) -> Self {
        let account = call.caller.account.clone();
        let name = format!("{records}_{account}_{}.csv", call.caller.mode);
        Self {
            records,
            account,
            name,
        }
    }

    /// Answers with the header alone.
    ///
    /// # Errors
    /// 500 if it cannot be written.
    pub(crate) fn empty<C, const N: usize>(&self, columns: &[(&'static str, C); N]) -> Answer {
        Reply::file(&self.name, CONTENT_TYPE, lines([names(columns)])?)
    }

    /// Streams the header, then `chunks` of lines, in the turn `read`. A problem cuts the file off and is logged, since
    /// its head was sent.
    ///
    /// # Errors
    /// 500 if the header cannot be written.
    pub(crate) fn stream<C, const N: usize>(
        self,
        read: LargeRead,
        columns: &[(&'static str, C); N],
        chunks: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
    ) -> Answer {
        let Self {
            records,
            account,
            name,
        } = self;
        let header = Bytes::from(lines([names(columns)])?);
        let chunks = chunks.map_err(move |problem| {
            tracing::error!(account, ?problem, "an export of {records} was cut off");
            CutOff
        });
        Reply::stream(
            read,
            &name,
            CONTENT_TYPE,
            stream::iter([Ok(header)]).chain(chunks),
        )
    }
}

/// Returns a cell in which no spreadsheet finds a formula: an apostrophe is inserted before text that starts like one,
/// at the start of the cell or where a reader with another separator would see a start.
fn harmless(cell: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    let mut copied = 0;
    // Start of a cell, while nothing visible has followed it.
    let mut begin = Some(0);
    for (at, c) in cell.char_indices() {
        if let Some(first) = begin {
            let is_break = at == 0 && matches!(c, '\t' | '\r');
            if is_break || FORMULA.contains(&c) {
                safe.push_str(&cell[copied..first]);
                safe.push('\'');
                (copied, begin) = (first, None);
            } else if is_seen(c) {
                begin = None;
            }
        }
        if SEPARATORS.contains(&c) {
            begin = Some(at + c.len_utf8());
        }
    }
    match safe.is_empty() {
        true => Cow::Borrowed(cell),
        false => Cow::Owned(safe + &cell[copied..]),
    }
}

/// Returns whether a character ends the start of a cell: spreadsheets skip invisible characters, spaces and quotes.
fn is_seen(c: char) -> bool {
    printable::is_seen(c) && c != '"'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cell_that_begins_like_a_formula_gets_an_apostrophe() {
        for (cell, safe) in [
            ("=1+1", "'=1+1"),
            ("m;=cmd|' /C calc'!A0;z", "m;'=cmd|' /C calc'!A0;z"),
            ("a;;@x;+1", "a;;'@x;'+1"),
            ("a\t=1", "a\t'=1"),
            ("a\n-1\r\n=2", "a\n'-1\r\n'=2"),
            ("\t=1", "'\t'=1"),
            ("\u{ff1d}1+1", "'\u{ff1d}1+1"),
            ("a;\u{ff20}x", "a;'\u{ff20}x"),
            ("\u{200b}=1", "'\u{200b}=1"),
            ("\u{feff}\u{a0} =1", "'\u{feff}\u{a0} =1"),
            ("a;\u{2060}=1", "a;'\u{2060}=1"),
            ("a;\"=1\"", "a;'\"=1\""),
        ] {
            assert_eq!(harmless(cell), safe);
        }
        for cell in ["", "a=b", "a-b;c+d", "gpt-4o", "x;y", "'=1", "1.5", "a b - c"] {
            assert_eq!(harmless(cell), cell);
        }
    }

    proptest! {
        #[test]
        fn no_separator_leads_to_a_formula(cell in "[=+@a;\"' \t\r\n\u{200b}\u{ff1d}-]{0,12}") {
            let safe = harmless(&cell);
            for separators in [&[][..], &[';'], &['\t'], &['\r', '\n'], &[';', '\t', '\r', '\n']] {
                for part in safe.split(separators) {
                    let first = part.chars().find(|c| is_seen(*c));
                    prop_assert!(!first.is_some_and(|c| FORMULA.contains(&c)), "{cell:?} {part:?}");
                }
            }
            let without: String = safe.chars().filter(|c| *c != '\'').collect();
            let expected: String = cell.chars().filter(|c| *c != '\'').collect();
            prop_assert_eq!(without, expected, "nothing is lost");
        }
    }
}
