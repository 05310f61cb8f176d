//! `tollgate-admin completions` and `man`: this command line in the formats of shells and manuals. They need no store.

use crate::failure::CommandFailure;
use crate::report::Report;
use clap::Args;
use clap_complete::Shell;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

/// `completions`
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell to generate completions for
    shell: Shell,
}

/// `man`
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The directory to write to, which must exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Completions {
    pub(super) fn run(&self, mut command: clap::Command) -> Report {
        let mut script = Vec::new();
        let name = command.get_name().to_owned();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script);
        let document = json!({ "shell": self.shell.to_string(), "script": script });
        Report::new(script.trim_end(), document)
    }
}

impl Man {
    pub(super) fn run(&self, command: clap::Command) -> Result<Report, CommandFailure> {
        let out = &self.out;
        let pages = pages(&command);
        clap_mangen::generate_to(command, out).map_err(|error| unwritable(out, &error))?;
        let text = format!("Wrote {pages} pages to {}.", out.display());
        Ok(Report::new(
            text,
            json!({ "ok": true, "pages": pages, "out": out }),
        ))
    }
}

fn unwritable(out: &Path, error: &io::Error) -> CommandFailure {
    let message = format!("not all pages were written to {}: {error}", out.display());
    CommandFailure::refused("OUTPUT", message)
}

/// Returns the number of pages: one for each command.
fn pages(command: &clap::Command) -> usize {
    1 + command.get_subcommands().map(pages).sum::<usize>()
}
