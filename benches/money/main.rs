//! `bench-money`: the cost of each script that moves money to the store, and that it does not grow with the stored
//! data.
//!
//! Two stores in one run, one with few and one with many records of every kind in the same account. The scripts are
//! executed on both in turns, through the product's own twins; times are the server's (`INFO commandstats`).

mod load;
mod steps;

use clap::Parser;
use gate_bench::published::{self, Places, circumstances};
use gate_bench_rig::outcome::median;
use harness::Redis;
use load::fill;
use std::error::Error;
use std::process::ExitCode;
use steps::{Actor, Step};
use store::Store;

/// Measures the money scripts on a small and a large store.
#[derive(Debug, Parser)]
struct Options {
    /// Wallets, transactions, intents, idempotency records and escrows in the small store, each.
    #[arg(long, default_value_t = 1_000)]
    small: u64,
    /// The same in the large store.
    #[arg(long, default_value_t = 1_000_000)]
    large: u64,
    /// Calls of each script in a round.
    #[arg(long, default_value_t = 2_000)]
    calls: u64,
    /// Rounds; the medians count.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    #[command(flatten)]
    places: Places,
}

impl Options {
    /// Returns whether the options are those of a published report.
    fn is_whole(&self) -> bool {
        let lengths = |options: &Self| (options.small, options.large, options.calls, options.rounds);
        lengths(self) == lengths(&Self::parse_from(["bench-money"]))
    }
}

const HEAD: &str = "\
# What the money scripts cost

Written by `make bench-money`: microseconds of the store a call, as the server itself counts them (`INFO commandstats`, calls inside \
the script included), on a store with few and one with many wallets, transactions, intents (which are the records of idempotency \
keys) and escrows in one account. Both are measured in turns in one run, without the append-only file. A row is one script, `escrow create` two.
";

struct Fixture {
    redis: Redis,
    store: Store,
    actor: Actor,
}

impl Fixture {
    async fn found(records: u64) -> Result<Self, Box<dyn Error>> {
        let redis = Redis::start();
        let store = Store::open(&redis.unix_url(), std::time::Duration::from_secs(10))?;
        fill(&store, records).await?;
        Ok(Self {
            redis,
            store,
            actor: Actor::default(),
        })
    }

    /// Measures the server's time for a call of `step`, in microseconds, calls inside the script included.
    async fn measure(&mut self, step: Step, calls: u64) -> Result<f64, Box<dyn Error>> {
        self.actor.prepare(&self.store, step).await?;
        let _: String = self.redis.command(&["CONFIG", "RESETSTAT"]);
        self.actor.execute(&self.store, step, calls).await?;
        let figure = |name| {
            self.redis
                .stat("evalsha", name)
                .and_then(|text| text.parse::<f64>().ok())
        };
        let (scripts, micros) = (figure("calls="), figure("usec="));
        match scripts.zip(micros) {
            Some((scripts, micros)) if scripts as u64 == calls * step.scripts() => Ok(micros / calls as f64),
            found => Err(format!("{}: {found:?} scripts for {calls} calls", step.name()).into()),
        }
    }
}

async fn run(options: &Options) -> Result<String, Box<dyn Error>> {
    let circumstances = circumstances();
    let mut small = Fixture::found(options.small).await?;
    let mut large = Fixture::found(options.large).await?;
    let used: Option<String> = large
        .redis
        .command::<String>(&["INFO", "memory"])
        .lines()
        .find_map(|line| line.strip_prefix("used_memory_human:").map(str::to_owned));
    let mut table = format!(
        "{HEAD}\n{circumstances}\n| script | µs a call, {} records of each kind | {} | ratio |\n|---|---:|---:|---:|\n",
        options.small, options.large
    );
    let mut figures = vec![(Vec::new(), Vec::new()); Step::ALL.len()];
    for _ in 0..options.rounds {
        for (step, (few, many)) in Step::ALL.iter().zip(&mut figures) {
            few.push(small.measure(*step, options.calls).await?);
            many.push(large.measure(*step, options.calls).await?);
        }
    }
    for (step, (few, many)) in Step::ALL.iter().zip(figures) {
        let (few, many) = (median(few).unwrap_or_default(), median(many).unwrap_or_default());
        table += &format!("| {} | {few:.1} | {many:.1} | {:.2} |\n", step.name(), many / few);
    }
    table += &format!(
        "\nMedians of {} rounds of {} calls. The large store uses {}.\n",
        options.rounds,
        options.calls,
        used.unwrap_or_default().trim()
    );
    Ok(table)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_whole = options.is_whole();
    published::main("bench-money", &options.places, is_whole, run(&options))
}
