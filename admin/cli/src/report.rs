//! The only place that writes to standard output: the report of a command, for people or as one JSON document.

use super::document::{JsonObject, document};
use super::failure;
use super::output::{write_stderr, write_stdout};
use super::table::table;
use clap::error::ErrorKind;
use serde::Serialize;
use serde_json::json;
use std::io;
use std::process::ExitCode;

/// The report of a command.
#[derive(Debug)]
pub(super) struct Report {
    /// For people; without a final line break. Empty for a server.
    text: String,
    /// For scripts.
    json: JsonObject,
    exit: u8,
    /// True if it contains a secret that is shown only once.
    secret: bool,
}

impl Report {
    /// Creates the report of a command that succeeded.
    pub(super) fn new(text: impl Into<String>, json: impl Into<JsonObject>) -> Self {
        Self {
            text: text.into(),
            json: json.into(),
            exit: 0,
            secret: false,
        }
    }

    /// Creates the report of a list: a table with these columns for people; for scripts the documents, under `name`,
    /// and their number.
    pub(super) fn list<T, D: Serialize>(
        (name, columns): (&str, &[&str]),
        records: &[T],
        row: impl Fn(&T) -> Vec<String>,
        document: impl Fn(&T) -> D,
    ) -> Self {
        let rows: Vec<Vec<String>> = records.iter().map(row).collect();
        let documents: Vec<D> = records.iter().map(document).collect();
        Self::new(
            table(columns, &rows),
            document! { "total": records.len() }.with(name, &documents),
        )
    }

    /// Adds a member to the document for scripts.
    pub(super) fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.json = self.json.with(name, &value);
        self
    }

    /// Creates the report of a command that has already written its output, or has none, such as a server that ended.
    pub(super) fn silent() -> Self {
        Self::new("", json!({ "ok": true }))
    }

    /// Marks that the report contains a secret that is shown only once.
    pub(super) fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Marks that the command could not do everything.
    pub(super) fn incomplete(self) -> Self {
        Self {
            exit: failure::REFUSED,
            ..self
        }
    }

    /// Marks that the check has no result.
    pub(super) fn inconclusive(self) -> Self {
        Self {
            exit: failure::INCONCLUSIVE,
            ..self
        }
    }

    /// Adds the things that a successful command could not clean up: `things` under `name` in the document, and `text`
    /// for people.
    pub(super) fn with_trouble(mut self, name: &str, things: &[String], text: &str) -> Self {
        self.text = format!("{}\n\n{text}", self.text);
        self.with("ok", false).with(name, things).incomplete()
    }

    /// Prints it. If the reader closes standard output early (`| head -1`), this is no failure, unless a secret is
    /// lost.
    pub(super) fn print(&self, json: bool) -> ExitCode {
        let written = match (json, self.text.is_empty()) {
            (true, _) => serde_json::to_string(&self.json)
                .map_err(io::Error::from)
                .and_then(|document| write_stdout(&document)),
            (false, true) => Ok(()),
            (false, false) => write_stdout(&self.text),
        };
        match written {
            Err(error) if self.secret || error.kind() != io::ErrorKind::BrokenPipe => {
                write_stderr(&format!("standard output cannot be written: {error}"));
                ExitCode::from(failure::REFUSED)
            }
            _ => ExitCode::from(self.exit),
        }
    }
}

/// Prints clap's output: help and version on standard output, an error on standard error, and with `--json` also as a
/// document. The options are not parsed at that point, so `--json` is searched for among the words.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let words = std::env::args_os().take_while(|word| word != "--");
    let json = words.skip(1).any(|word| word == "--json");
    if error.use_stderr() {
        let failure = failure::CommandFailure::usage(sentence(error));
        if json {
            failure.print_document();
        }
        let _unwritable = error.print();
        return ExitCode::from(failure::USAGE);
    }
    if json {
        let what = match error.kind() {
            ErrorKind::DisplayVersion => "version",
            _ => "help",
        };
        let _unwritable = write_stdout(&json!({ what: error.to_string().trim_end() }).to_string());
    } else {
        let _unwritable = error.print();
    }
    ExitCode::SUCCESS
}

/// Returns the error without the advice that follows it, on one line.
fn sentence(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; --help lists them".to_owned();
    }
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").to_owned()
}
