//! `bench-load`: sends chat requests for a while and prints what it found as one line of JSON.

use clap::Parser;
use gate_bench_rig::outcome::{Watched, Window};
use gate_bench_rig::{closed, open, wire};
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Without `--rate` in a closed loop, with it in an open one.
#[derive(Debug, Parser)]
struct Options {
    /// Who is to answer.
    #[arg(long)]
    target: SocketAddr,
    /// A file with one key a line. Connection number i uses line i (beyond the last: from the first on), and the run
    /// `bench-i`.
    #[arg(long)]
    keys: PathBuf,
    /// Keep-alive connections.
    #[arg(long)]
    connections: usize,
    /// Length of the window that counts.
    #[arg(long)]
    seconds: f64,
    /// Time before it.
    #[arg(long)]
    warm_up: f64,
    /// The status that every answer must have.
    #[arg(long)]
    expect: u16,
    /// Requests a second, over all connections.
    #[arg(long)]
    rate: Option<f64>,
    /// A process whose CPU time is reported: NAME=PID.
    #[arg(long)]
    watch: Vec<Watched>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let keys = std::fs::read_to_string(&options.keys)?;
    let keys: Vec<&str> = keys.lines().collect();
    let host = options.target.to_string();
    let request = |(number, key): (usize, &&str)| wire::chat_request(&host, key, &format!("bench-{number}"));
    let requests = keys.iter().enumerate().map(request).cycle();
    let requests: Vec<Vec<u8>> = requests.take(options.connections).collect();
    let seconds = Duration::try_from_secs_f64(options.seconds)?;
    let window = Window::after(Duration::try_from_secs_f64(options.warm_up)?, seconds);
    let (target, expected, watched) = (options.target, options.expect, &options.watch);
    let outcome = match options.rate {
        Some(rate) => open::run(target, requests, expected, rate, window, watched)?,
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(closed::run(target, requests, expected, window, watched))?
        }
    };
    let line = serde_json::to_string(&outcome)?;
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
