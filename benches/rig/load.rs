//! `bench-load`: sends chat requests for a while and prints the outcome as one line of JSON.

use clap::Parser;
use gate_bench_rig::outcome::{WatchedProcess, Window};
use gate_bench_rig::streams::{self, Caller};
use gate_bench_rig::target::{Request, Target, Version};
use gate_bench_rig::{closed, open, tls, wire};
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A closed loop; with `--rate` an open one; with `--stream-every-us` streams.
#[derive(Debug, Parser)]
struct Options {
    /// Address of the target; connections take turns over several.
    #[arg(long, required = true)]
    target: Vec<SocketAddr>,
    /// A file with one key a line. Request number i uses line i (after the last line, the first again), and the run
    /// `bench-i`.
    #[arg(long)]
    keys: PathBuf,
    /// Requests or streams under way at once, each over a keep-alive connection of its own.
    #[arg(long)]
    connections: usize,
    /// Length of the measured window.
    #[arg(long)]
    seconds: f64,
    /// Time before the window.
    #[arg(long)]
    warm_up: f64,
    /// The status that every answer must have; given more than once, one of them.
    #[arg(long, required = true)]
    expect: Vec<u16>,
    /// Requests a second, over all connections.
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// Size of the request's body.
    #[arg(long, default_value_t = wire::REQUEST_BODY_BYTES, value_parser = body_bytes)]
    body_bytes: usize,
    /// A file of PEM certificates: TLS, with a certificate that one of them signed.
    #[arg(long)]
    tls_ca: Option<PathBuf>,
    /// HTTP/2 instead of HTTP/1.1, with this many requests sharing a connection.
    #[arg(long, conflicts_with = "rate")]
    http2_streams: Option<usize>,
    /// Request streams with an event every so many microseconds. Latencies are then times to the first event.
    #[arg(long, conflicts_with_all = ["rate", "http2_streams", "tls_ca"], value_parser = every_us)]
    stream_every_us: Option<u64>,
    /// A process whose CPU time is reported: NAME=PID.
    #[arg(long)]
    watch: Vec<WatchedProcess>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match rate {
        0.001..=10_000_000.0 => Ok(rate),
        _ => Err("not between 0.001 and 10000000".to_owned()),
    }
}

fn every_us(text: &str) -> Result<u64, String> {
    let every_us: u64 = text
        .parse()
        .map_err(|_| "not a number of microseconds".to_owned())?;
    match every_us {
        1..=10_000_000 => Ok(every_us),
        _ => Err("not between 1 and 10000000".to_owned()),
    }
}

fn body_bytes(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|_| "not a number of bytes".to_owned())?;
    match bytes {
        wire::BODY_BYTES_MIN..=wire::BODY_BYTES_MAX => Ok(bytes),
        _ => Err(format!(
            "not between {} and {}",
            wire::BODY_BYTES_MIN,
            wire::BODY_BYTES_MAX
        )),
    }
}

impl Options {
    fn target(&self) -> std::io::Result<Target> {
        let version = match self.http2_streams {
            Some(_) => Version::Http2,
            None => Version::Http1,
        };
        let offered: &[u8] = match version {
            Version::Http1 => b"http/1.1",
            Version::Http2 => b"h2",
        };
        let tls = self.tls_ca.as_ref().map(|ca| tls::connector(ca, offered));
        Ok(Target {
            addresses: self.target.clone(),
            expected: self.expect.clone(),
            version,
            tls: tls.transpose()?,
        })
    }

    fn host(&self) -> String {
        self.target.first().map(ToString::to_string).unwrap_or_default()
    }

    fn caller(&self, every_us: u64) -> std::io::Result<Caller> {
        let keys = std::fs::read_to_string(&self.keys)?;
        Ok(Caller {
            host: self.host(),
            keys: keys.lines().map(str::to_owned).collect(),
            body_bytes: self.body_bytes,
            every: Duration::from_micros(every_us),
        })
    }

    fn requests(&self) -> std::io::Result<Vec<Request>> {
        let keys = std::fs::read_to_string(&self.keys)?;
        let host = self.host();
        let body = wire::chat_body(self.body_bytes);
        let numbered = keys.lines().cycle().take(self.connections).enumerate();
        Ok(numbered
            .map(|(number, key)| Request::new(number, &host, key, &body))
            .collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let (target, requests) = (Arc::new(options.target()?), options.requests()?);
    let seconds = Duration::try_from_secs_f64(options.seconds)?;
    let warm_up = Duration::try_from_secs_f64(options.warm_up)?;
    let window = Window::after(warm_up, seconds);
    let watched = &options.watch;
    let outcome = match (options.rate, options.stream_every_us) {
        (_, Some(every_us)) => {
            let caller = options.caller(every_us)?;
            streams::run(target, caller, options.connections, (warm_up, seconds), watched).await?
        }
        (Some(rate), None) => open::run(target, requests, rate, window, watched).await?,
        (None, None) => {
            let streams = options.http2_streams.unwrap_or(1);
            closed::run(target, requests, streams, window, watched).await?
        }
    };
    let line = serde_json::to_string(&outcome)?;
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}
