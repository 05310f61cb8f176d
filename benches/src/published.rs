//! The reports of `bench-money`, `bench-record` and `bench-growth`: their head and their files. The published reports
//! in `results/` are those of whole runs: a run that measures less, or for a shorter time, does not replace them.

use crate::facts;
use clap::Args;
use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The facts that matter without an edge under load and without another proxy.
const FACTS: [&str; 5] = ["Processor", "Memory", "Kernel", "rustc", "Redis"];

/// Files of the report, besides standard output.
#[derive(Debug, Args)]
pub struct Places {
    /// Path of the report.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The published report: only a whole run replaces it.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
}

impl Places {
    fn files(&self, is_whole: bool) -> Vec<&Path> {
        let published = self.results.as_deref().filter(|_| is_whole);
        self.out.as_deref().into_iter().chain(published).collect()
    }

    /// Writes and prints a report.
    fn put(&self, report: &str, is_whole: bool) -> io::Result<()> {
        for file in self.files(is_whole) {
            std::fs::write(file, report)?;
        }
        io::stdout().write_all(report.as_bytes())?;
        match &self.results {
            Some(results) if !is_whole => {
                let results = results.display();
                writeln!(io::stderr(), "{results} stays as it is: this was no whole run")
            }
            _ => Ok(()),
        }
    }
}

/// Runs the benchmark `name` on one thread, and writes its report. `is_whole` is true if its options are those of a
/// published report.
pub fn main(
    name: &str,
    places: &Places,
    is_whole: bool,
    run: impl Future<Output = Result<String, Box<dyn Error>>>,
) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run))
        .and_then(|report| Ok(places.put(&report, is_whole)?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A failure is ignored: the run has ended.
            let _unwritable = writeln!(io::stderr(), "{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the circumstances of a measurement that begins now: machine, versions, commit, time and load average.
pub fn circumstances() -> String {
    let machine = facts::facts();
    let machine = machine
        .into_iter()
        .filter(|(name, _)| FACTS.contains(&name.as_str()));
    let now = [
        ("Commit", facts::commit()),
        ("Begun at", domain::timestamp::iso_from_ms(clock::now_ms())),
        ("Load average before", facts::load_average()),
    ];
    let now = now.map(|(name, value)| (name.to_owned(), value));
    let lines = machine
        .chain(now)
        .map(|(name, value)| format!("- {name}: {value}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_run_is_published() {
        let [out, results] = ["out.md", "results.md"].map(PathBuf::from);
        let places = Places {
            out: Some(out.clone()),
            results: Some(results.clone()),
        };
        assert_eq!(places.files(true), [&*out, &*results]);
        assert_eq!(places.files(false), [&*out]);
    }

    #[test]
    fn a_report_names_its_circumstances() {
        let head = circumstances();
        for name in FACTS.iter().chain(&["Commit", "Begun at", "Load average before"]) {
            assert!(head.contains(&format!("- {name}: ")), "{name}: {head}");
        }
    }
}
