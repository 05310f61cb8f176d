//! The one place that writes to standard output: what a command has to say, for people or as one JSON document.

use super::failure;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// What a command has to say.
#[derive(Debug)]
pub(super) struct Report {
    /// For people; without a final line break.
    text: String,
    /// For scripts; `None` for a server, which says nothing on standard output.
    json: Option<Value>,
    exit: u8,
}

impl Report {
    /// The command did what it was asked to.
    pub(super) fn new(text: impl Into<String>, json: Value) -> Self {
        Self {
            text: text.into(),
            json: Some(json),
            exit: 0,
        }
    }

    /// A server that ended.
    pub(super) const fn silent() -> Self {
        Self {
            text: String::new(),
            json: None,
            exit: 0,
        }
    }

    /// The same report, of a command that could not do everything.
    pub(super) fn incomplete(self) -> Self {
        Self {
            exit: failure::REFUSED,
            ..self
        }
    }

    /// Prints it. A report that cannot be written is a failure: it may have held a secret that is shown once.
    pub(super) fn print(&self, json: bool) -> ExitCode {
        let written = match &self.json {
            None => Ok(()),
            Some(document) if json => write_stdout(&document.to_string()),
            Some(_) => write_stdout(&self.text),
        };
        match written {
            Ok(()) => ExitCode::from(self.exit),
            Err(error) => {
                write_stderr(&format!("standard output cannot be written: {error}"));
                ExitCode::from(failure::REFUSED)
            }
        }
    }
}

/// Writes one line to standard output.
pub(super) fn write_stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes one line with the program's name to standard error. Nobody is left to tell when that fails.
pub(super) fn write_stderr(text: &str) {
    let _unwritable = writeln!(io::stderr().lock(), "tollgate-admin: {text}");
}

/// What clap has to say: help and version on standard output, a mistake on standard error, and with `--json` as a
/// document too. The options are not parsed at that point, so `--json` is looked for among the words.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let _unwritable = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|word| word == "--json") {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let message = line.trim_start_matches("error: ");
        let document = serde_json::json!({ "ok": false, "error": message, "code": "USAGE" });
        let _unwritable = write_stdout(&document.to_string());
    }
    ExitCode::from(failure::USAGE)
}

/// Rows in columns, each as wide as its widest cell.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(head.get(column).map_or(0, |cell| cell.len()))
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&mut head.iter().copied())];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![
            vec!["a".into(), "long cell".into()],
            vec!["bcd".into(), "é".into()],
        ];
        assert_eq!(table(&["ID", "NAME"], &rows), "ID   NAME\na    long cell\nbcd  é");
    }
}
