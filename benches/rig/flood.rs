//! `bench-flood`: floods a server on loopback for a while and prints its counters as one line of JSON.

use clap::Parser;
use gate_bench_rig::flood::{Flood, Plan, run};
use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Floods a server on loopback
#[derive(Debug, Parser)]
struct Options {
    /// Kind of the flood.
    #[arg(long, value_enum)]
    flood: Flood,
    /// Address to flood; loopback only.
    #[arg(long)]
    target: SocketAddr,
    /// Connections that are kept open.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    connections: u32,
    /// Use 10,000 source addresses instead of one.
    #[arg(long)]
    spread: bool,
    /// A file with one key a line.
    #[arg(long)]
    keys: Option<PathBuf>,
    /// Duration, at most ten minutes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let keys = options
        .keys
        .map(std::fs::read_to_string)
        .transpose()?
        .unwrap_or_default();
    let plan = Plan {
        flood: options.flood,
        target: options.target,
        connections: options.connections as usize,
        spread: options.spread,
        keys: keys.lines().map(str::to_owned).collect(),
        end: Instant::now() + Duration::from_secs(options.seconds),
    };
    let done = run(plan).await?;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let line = serde_json::json!({
        "opened": count(&done.opened),
        "ended": count(&done.ended),
        "answers": count(&done.answers),
    });
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
