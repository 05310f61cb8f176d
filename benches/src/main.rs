//! `make bench`: Tollgate beside nginx and a bare Pingora in one run on loopback. How it is measured, and what to mind,
//! stands in `benches/README.md`.

mod contender;
mod ledger;
mod machine;
mod measure;
mod process;
mod report;
mod stage;
mod summary;

use clap::Parser;
use contender::Name;
use gate_bench_rig::outcome::Outcome;
use machine::Cores;
use measure::{CONNECTIONS, Phase, Rounds, Runner, Times};
use report::Found;
use shared::clock;
use stage::Stage;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The closed loop.
const FULL_LOAD: Phase = Phase {
    connections: CONNECTIONS,
    rate: None,
};
/// Connections of the fixed rate that is not over a single one.
const PACED_CONNECTIONS: usize = 16;

/// Measures Tollgate beside nginx and a bare Pingora pass-through.
#[derive(Debug, Parser)]
struct Options {
    /// Where the measured programs are: tollgate-proxy, bench-pass-through, bench-upstream, bench-load.
    #[arg(long, default_value = "target/dist")]
    bin_dir: PathBuf,
    /// Length of every phase.
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// Time before each phase that does not count.
    #[arg(long, default_value_t = 1.5)]
    warm_up: f64,
    /// Rounds over all contenders; the medians are reported.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Requests a second of the fixed rate over several connections.
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Requests a second of the fixed rate over one connection.
    #[arg(long, default_value_t = 500.0)]
    single_rate: f64,
    /// Measure these only, for a look at one of them; the report then has no floor to speak of.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Name>,
    /// The report; printed as well.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results/latest.md"))]
    out: PathBuf,
    /// A sentence for the head of the report.
    #[arg(long, default_value = "")]
    note: String,
}

impl Options {
    /// Those of `names` that are to be measured.
    fn of(&self, names: &[Name]) -> Vec<Name> {
        let wanted = |name: &&Name| self.only.is_empty() || self.only.contains(*name);
        names.iter().filter(wanted).copied().collect()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options).await {
        Ok(found) if found.errors.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("gate-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Progress and complaints go to stderr, the report alone to stdout.
fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

async fn run(options: &Options) -> Result<Found, Box<dyn Error>> {
    let cores = Cores::of(std::thread::available_parallelism()?.get());
    let real_time = machine::has_real_time();
    let head = head(options, cores, real_time);
    let shown = options.bin_dir.display();
    let bin_dir = options
        .bin_dir
        .canonicalize()
        .map_err(|error| format!("--bin-dir {shown}: {error}"))?;
    let stage = Stage::start(&bin_dir, cores).await?;
    say(&format!("running in {}", stage.dir().display()));
    let (durable_edge, memory_edge) = stage.edge_urls();
    let prices = (
        stage.durable.price_of_a_call(&durable_edge).await?,
        stage.memory.price_of_a_call(&memory_edge).await?,
    );

    let runner = Runner {
        stage: &stage,
        cores,
        real_time,
        times: Times {
            seconds: options.seconds,
            warm_up: options.warm_up,
        },
    };
    let closed = runner.rounds(options.rounds, &options.of(&Name::ALL), FULL_LOAD, progress)?;
    let mut open = Vec::new();
    for (connections, rate) in [(1, options.single_rate), (PACED_CONNECTIONS, options.rate)] {
        let phase = Phase {
            connections,
            rate: Some(rate),
        };
        let names = options.of(&Name::AT_FIXED_RATE);
        open.push((phase, runner.rounds(options.rounds, &names, phase, progress)?));
    }
    let (calls_checked, errors) = check(&stage, prices, &closed, &open).await;
    let found = Found {
        closed,
        open,
        errors,
        calls_checked,
    };
    let text = report::markdown(&head, &found);
    write!(std::io::stdout(), "{text}")?;
    if let Some(dir) = options.out.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(&options.out, &text)?;
    Ok(found)
}

/// Everything that went wrong, and how many calls the ledgers were compared with.
async fn check(
    stage: &Stage,
    prices: (u64, u64),
    closed: &Rounds,
    open: &[(Phase, Rounds)],
) -> (u64, Vec<String>) {
    let phases: Vec<&Rounds> = std::iter::once(closed)
        .chain(open.iter().map(|(_, rounds)| rounds))
        .collect();
    let mut errors: Vec<String> = phases.iter().flat_map(|rounds| measure::errors(rounds)).collect();
    let calls = |name: Name| -> u64 {
        phases
            .iter()
            .map(|rounds| measure::answered_in_all(rounds, name))
            .sum()
    };
    let durable_calls = calls(Name::Tollgate) + calls(Name::TollgateQuiet);
    let memory_calls = calls(Name::TollgateMemory);
    errors.extend(stage.durable.check(durable_calls, prices.0).await.err());
    errors.extend(stage.memory.check(memory_calls, prices.1).await.err());
    (durable_calls + memory_calls, errors)
}

fn progress(name: Name, outcome: &Outcome) {
    let Outcome {
        answered,
        seconds,
        errors,
        latency,
        ..
    } = outcome;
    let rate = *answered as f64 / seconds;
    say(&format!(
        "{:<36} {rate:>8.0}/s  p50 {:>7.0} µs  {errors} errors",
        name.shown(),
        latency.p50_us
    ));
}

fn head(options: &Options, cores: Cores, real_time: bool) -> String {
    let Options {
        seconds,
        warm_up,
        rounds,
        bin_dir,
        note,
        ..
    } = options;
    let priority = if real_time {
        "real-time"
    } else {
        "normal (chrt is refused)"
    };
    let (at, layout, facts) = (
        clock::iso_from_ms(clock::now_ms()),
        cores.describe(),
        machine::facts(),
    );
    let note = if note.is_empty() {
        String::new()
    } else {
        format!("**{note}**\n\n")
    };
    format!(
        "# Bench of {at}\n\n{note}Written by `make bench`; benches/README.md says how to read it. A 1 KB chat request, \
         an answer of 0.9 KB, loopback, {layout}; every proxy with one worker thread. Medians of {rounds} interleaved \
         rounds of {seconds} s after {warm_up} s of warming up. Programs from `{}`; fixed rates are sent with {priority} \
         priority.\n\n{facts}",
        bin_dir.display()
    )
}
