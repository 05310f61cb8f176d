//! The reports of `bench-money`, `bench-record` and `bench-growth`: their head and their files. The published reports
//! in `results/` are those of whole runs: a run that measures less, or for a shorter time, does not replace them.

#[path = "src/facts.rs"]
mod facts;

use clap::Args;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The facts that matter without an edge under load and without another proxy.
const FACTS: [&str; 5] = ["Processor", "Memory", "Kernel", "rustc", "Redis"];

/// Files of the report, besides standard output.
#[derive(Debug, Args)]
pub(crate) struct Places {
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
    pub(crate) fn put(&self, report: &str, is_whole: bool) -> io::Result<()> {
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

/// Returns the circumstances of a measurement that begins now: machine, versions, commit, time and load average.
pub(crate) fn circumstances() -> String {
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
