//! `bench-growth`: the cost of a call to the store, and that it does not grow with the stored data.
//!
//! The first table has the cost of each kind of call on a small store, with and without the append-only file. The
//! others compare it with a store that holds many keys, agents, runs, open holds or past decisions, both measured in
//! one run. All calls use the product's own twins; the records are written directly into the store ([`fill`]).

mod actor;
mod calls;
mod case;
mod edge;
mod fill;
mod fixture;

use calls::CallKind;
use case::Case;
use clap::Parser;
use fixture::Fixture;
use gate_bench::published::{self, Places, circumstances};
use gate_bench_rig::outcome::median;
use harness::Redis;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Highest accepted ratio of a call's cost to that of the smallest case.
const GOAL: f64 = 1.2;

/// Measures the cost of a call, and that it does not grow with the stored data.
#[derive(Debug, Parser)]
struct Options {
    /// One part only: `calls`, `growth` or `edge`.
    #[arg(long)]
    only: Option<String>,
    /// Calls of each kind in a round.
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// Rounds; the medians count.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Calls under way at once, on one connection.
    #[arg(long, default_value_t = 64)]
    depth: usize,
    /// Percentage of the many records that is written: 100 for the published numbers.
    #[arg(long, default_value_t = 100)]
    percent: u64,
    /// The edge whose memory is measured.
    #[arg(long, value_parser = program)]
    edge: Option<PathBuf>,
    #[command(flatten)]
    places: Places,
}

/// Resolves the path of a program: the harness starts each process in a directory of its own.
fn program(path: &str) -> Result<PathBuf, String> {
    Path::new(path).canonicalize().map_err(|error| error.to_string())
}

impl Options {
    fn does(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    /// Returns whether the options are those of a published report.
    fn is_whole(&self) -> bool {
        let published = Self::parse_from(["bench-growth"]);
        let lengths = |options: &Self| (options.calls, options.rounds, options.depth, options.percent);
        self.only.is_none() && self.edge.is_some() && lengths(self) == lengths(&published)
    }
}

/// Returns the table of the cost of each kind of call, with and without the append-only file.
async fn prices(options: &Options) -> Outcome<String> {
    let mut durable = Fixture::found(&Redis::EVERY_SECOND).await?;
    let mut memory = Fixture::found(&[]).await?;
    let mut figures = vec![(Vec::new(), Vec::new()); CallKind::ALL.len()];
    for _ in 0..options.rounds {
        for (kind, (with, without)) in CallKind::ALL.iter().zip(&mut figures) {
            with.push(durable.measure(*kind, options.calls, options.depth).await?);
            without.push(memory.measure(*kind, options.calls, options.depth).await?);
        }
    }
    durable.check().await?;
    memory.check().await?;
    let mut table =
        "| call | µs of the store's CPU | without append-only file |\n|---|---:|---:|\n".to_owned();
    for (kind, (with, without)) in CallKind::ALL.iter().zip(figures) {
        let (with, without) = (
            median(with).unwrap_or_default(),
            median(without).unwrap_or_default(),
        );
        writeln!(table, "| {} | {with:.1} | {without:.1} |", kind.name())?;
    }
    Ok(table)
}

/// Returns the table that compares each case with the small store.
async fn growth(options: &Options) -> Outcome<String> {
    const KINDS: [CallKind; 2] = [CallKind::Named, CallKind::Daily];
    let mut costs = "| the store holds | approved, µs | times the small store | denied, µs | times the small store | goal |\n\
        |---|---:|---:|---:|---:|---|\n"
        .to_owned();
    let mut sizes =
        "| measured over | one of them | bytes of the store's memory |\n|---|---|---:|\n".to_owned();
    for case in Case::all(options.percent) {
        let mut small = Fixture::found(&[]).await?;
        let mut large = Fixture::found(&[]).await?;
        let before = large.redis.memory_used();
        case.fill(&mut large).await?;
        let bytes = large.redis.memory_used().saturating_sub(before) as f64 / case.records as f64;
        let mut figures = vec![(Vec::new(), Vec::new()); KINDS.len()];
        for _ in 0..options.rounds {
            for (kind, (few, many)) in KINDS.iter().zip(&mut figures) {
                few.push(small.measure(*kind, options.calls, options.depth).await?);
                many.push(large.measure(*kind, options.calls, options.depth).await?);
            }
        }
        small.check().await?;
        large.check().await?;
        write!(costs, "| {} |", case.name())?;
        let mut met = true;
        for (few, many) in figures {
            let (few, many) = (median(few).unwrap_or_default(), median(many).unwrap_or_default());
            met &= many <= GOAL * few;
            write!(costs, " {many:.1} | {:.2} |", many / few)?;
        }
        writeln!(costs, " {} |", if met { "met" } else { "not met" })?;
        writeln!(sizes, "| {} | {} | {bytes:.0} |", case.name(), case.what())?;
    }
    Ok(format!(
        "{costs}\nThe goal is at most {GOAL} times the small store.\n\n{sizes}"
    ))
}

async fn run(options: &Options) -> Outcome<String> {
    let mut report = format!(
        "# The price of a call, and what it grows with\n\nWritten by `make bench-growth`; benches/README.md says how to read it. \
         Medians of {} rounds of {} calls, {} under way at once on one connection. An approved call is `authorize` and \
         `settle`.\n\n{}\n",
        options.rounds,
        options.calls,
        options.depth,
        circumstances()
    );
    if options.does("calls") {
        report += &prices(options).await?;
    }
    if options.does("growth") {
        writeln!(report, "\n## With much in the store\n")?;
        if options.percent != 100 {
            writeln!(
                report,
                "Only {} % of the records were written.\n",
                options.percent
            )?;
        }
        report += &growth(options).await?;
    }
    if let Some(edge) = options.edge.as_deref().filter(|_| options.does("edge")) {
        writeln!(report, "\n## Memory of an edge\n")?;
        report += &edge::table(edge, options.percent, options.depth).await?;
    }
    Ok(report)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_whole = options.is_whole();
    published::main("bench-growth", &options.places, is_whole, run(&options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_no_whole_run() {
        let whole = ["bench-growth", "--edge", "/bin/true"];
        let is_whole = |more: &[&str]| Options::parse_from([&whole[..], more].concat()).is_whole();
        assert!(is_whole(&[]) && is_whole(&["--results", "growth.md"]));
        for less in [
            ["--only", "calls"],
            ["--percent", "1"],
            ["--rounds", "1"],
            ["--calls", "10"],
        ] {
            assert!(!is_whole(&less), "{less:?}");
        }
        assert!(
            !Options::parse_from(["bench-growth"]).is_whole(),
            "no edge, no memory of it"
        );
    }
}
