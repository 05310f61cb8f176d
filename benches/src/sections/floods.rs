//! Floods: the cost of strangers and of exhausted keys to a well-behaved caller, in latency and errors, and to the
//! server, in memory and CPU time. Each flood runs against a fresh process.
//!
//! The edge's caller makes calls at a fixed rate; over TLS, one call after the other on each of its connections. The
//! admin server's caller lists its agents, one request after the other. A real flood comes from other machines, so its
//! sender gets little more of its core here than store, provider and caller leave. The kernel's work for the sender is
//! not accounted separately.

use super::Outcome;
use crate::contender::{Contender, EDGE, Name};
use crate::fixture::{Fixture, PLANS, Server, Sides, tollgate};
use crate::ledger::{AgentKind, Ledger};
use crate::machine::{pin, yield_core};
use crate::measure::Runner;
use crate::phase::{Phase, Wire};
use crate::process::BackgroundProcess;
use crate::section::Lengths;
use crate::sections::memory::rest;
use gate_bench_rig::cpu;
use gate_bench_rig::flood::Flood;
use gate_bench_rig::memory::{forget_peak, sum};
use gate_bench_rig::outcome::median;
use harness::{Admin, AdminOptions, Caller};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Connections and requests a second of the well-behaved caller of the edge.
const CALLER: (usize, f64) = (4, 200.0);
/// Pause between two requests of the well-behaved caller of the admin server.
const PAUSE: Duration = Duration::from_millis(5);
/// Time that a flood lasts beyond the caller's phase, in seconds.
const MARGIN: f64 = 2.0;
/// Agents whose keys begin requests that never end.
const SPARE_AGENTS: usize = 8;
/// Time in which the admin server becomes quiet, in seconds.
const QUIET_WITHIN_S: u32 = 120;
/// CPU time that it takes in a second when it is quiet, in seconds.
const QUIET_CPU_SECONDS: f64 = 0.1;
/// Time in which a flood opens its connections, in seconds.
const RISE: f64 = 1.5;

/// The flooded server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    /// `tollgate-proxy`.
    Edge,
    /// `tollgate-proxy` with TLS on the callers' side.
    EdgeTls,
    /// `tollgate-admin serve`.
    Admin,
}

/// A kind of flood.
#[derive(Debug, Clone, Copy)]
struct Case {
    side: Side,
    shown: &'static str,
    flood: Flood,
    connections: usize,
    spread: bool,
}

const fn case(side: Side, shown: &'static str, flood: Flood, connections: usize, spread: bool) -> Case {
    Case {
        side,
        shown,
        flood,
        connections,
        spread,
    }
}

/// Measured cases, in this order.
const CASES: [Case; 16] = [
    case(Side::Edge, "10,000 idle connections", Flood::Idle, 10_000, true),
    case(Side::Edge, "4,000 slow heads", Flood::SlowHead, 4000, true),
    case(Side::Edge, "2,000 slow bodies", Flood::SlowBody, 2000, true),
    case(
        Side::EdgeTls,
        "4,000 silent TLS handshakes",
        Flood::SilentTls,
        4000,
        true,
    ),
    case(
        Side::Edge,
        "1,000 answers that nobody reads",
        Flood::UnreadHealth,
        1000,
        true,
    ),
    case(
        Side::Edge,
        "rapid reset, 16 connections",
        Flood::RapidReset,
        16,
        false,
    ),
    case(
        Side::Edge,
        "CONTINUATION without end, 16 connections",
        Flood::Continuation,
        16,
        false,
    ),
    case(
        Side::Edge,
        "HTTP/2, 1,000 connections with 100 unread answers to invented keys",
        Flood::UnreadStreams,
        1000,
        true,
    ),
    case(
        Side::Edge,
        "the same after a request with a valid key",
        Flood::UnreadStreamsOfCaller,
        1000,
        true,
    ),
    case(
        Side::Edge,
        "invented keys, 64 at once",
        Flood::InventedKeys,
        64,
        false,
    ),
    case(
        Side::Edge,
        "keys over their rate, bodies of 1 MiB, 32 at once",
        Flood::OverRate,
        32,
        false,
    ),
    case(Side::Admin, "4,000 idle connections", Flood::Idle, 4000, true),
    case(Side::Admin, "4,000 slow heads", Flood::SlowHead, 4000, true),
    case(
        Side::Admin,
        "1,000 answers that nobody reads",
        Flood::UnreadAnswers,
        1000,
        true,
    ),
    case(
        Side::Admin,
        "sign-ins from one address, 32 at once",
        Flood::SignIns,
        32,
        false,
    ),
    case(
        Side::Admin,
        "sign-ins from 10,000 addresses, 32 at once",
        Flood::SignIns,
        32,
        true,
    ),
];

/// Effect of a flood on a server and on the caller beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FloodResult {
    /// The flooded server.
    pub(crate) side: Side,
    /// The flood; `None` for the caller alone.
    pub(crate) flood: Option<String>,
    /// Peak resident memory, in KiB.
    pub(crate) peak_kib: u64,
    /// Resident memory some seconds after the end of the flood, in KiB.
    pub(crate) after_kib: u64,
    /// Percent of a core that the server took during the caller's phase.
    pub(crate) percent: f64,
    /// The caller's latencies, in microseconds.
    pub(crate) p50_us: f64,
    /// See `p50_us`.
    pub(crate) p99_us: f64,
    /// The caller's requests that failed.
    pub(crate) errors: u64,
}

/// Outcome of the well-behaved caller.
#[derive(Debug, Clone, Copy)]
struct Samples {
    percent: f64,
    p50_us: f64,
    p99_us: f64,
    errors: u64,
}

impl Samples {
    /// The median of each number over the rounds, and all errors.
    fn median(rounds: &[Self]) -> Self {
        let median = |value: fn(&Self) -> f64| {
            let values = rounds.iter().map(value);
            median(values).unwrap_or(f64::NAN)
        };
        Self {
            percent: median(|samples| samples.percent),
            p50_us: median(|samples| samples.p50_us),
            p99_us: median(|samples| samples.p99_us),
            errors: rounds.iter().map(|samples| samples.errors).sum(),
        }
    }
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    let one = 1.0 + RISE + calls_seconds(lengths) + MARGIN + lengths.rest_seconds;
    let warm_up = CASES.iter().filter(|case| case.side == Side::Admin).count() + 1;
    (CASES.len() + 3) as f64 * one + warm_up as f64 * lengths.short_phase()
}

/// Duration of the caller's phases beside a flood, in seconds.
fn calls_seconds(lengths: &Lengths) -> f64 {
    lengths.rounds as f64 * lengths.short_phase()
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<FloodResult>> {
    let fixture = runner.fixture;
    let ledger = fixture.ledger(true).await?;
    let hasty = ledger.add_refused(AgentKind::Hasty).await?;
    let spare = ledger.add(AgentKind::Free, SPARE_AGENTS).await?.file;
    let reader = ledger.api_key().await;
    let mut found = Vec::new();
    let mut checked = 0;
    for side in [Side::Edge, Side::EdgeTls, Side::Admin] {
        let cases = CASES.iter().filter(|case| case.side == side).map(Some);
        for case in std::iter::once(None).chain(cases) {
            let keys = match case.map(|case| case.flood) {
                Some(Flood::OverRate) => hasty.clone(),
                _ => spare.clone(),
            };
            let flooded = match side {
                Side::Admin => on_admin(runner, lengths, &ledger, &reader, case, keys).await?,
                _ => {
                    let (flooded, calls) = on_edge(runner, lengths, &ledger, side, case, keys).await?;
                    checked = calls;
                    flooded
                }
            };
            found.push(flooded);
        }
    }
    Ok((found, checked))
}

/// One case against a fresh edge.
async fn on_edge(
    runner: &Runner<'_>,
    lengths: &Lengths,
    ledger: &Ledger,
    side: Side,
    case: Option<&Case>,
    keys: PathBuf,
) -> Result<(FloodResult, u64), Box<dyn Error>> {
    let sides = Sides {
        front_tls: side == Side::EdgeTls,
        back_tls: false,
    };
    let provider: Server = runner.fixture.provider(sides)?;
    let edge = runner
        .fixture
        .edge(runner.fixture.edge_setup(), ledger, &provider, sides)?;
    let contender = tollgate(Name::Tollgate, &[&edge], ledger, &provider);
    let (connections, rate) = CALLER;
    let phase = match sides.front_tls {
        // The load generator keeps a rate without TLS only.
        true => Phase {
            wire: Wire::Tls,
            connections,
            ..lengths.short()
        },
        false => Phase {
            seconds: lengths.short_seconds,
            ..lengths.open(connections, rate)
        },
    };
    let flood = start(runner.fixture, case, edge.addr(), keys, lengths)?;
    forget_peak(&[edge.pid()])?;
    let mut rounds = Vec::new();
    for _ in 0..lengths.rounds {
        rounds.push(call(runner, &contender, phase)?);
    }
    let samples = Samples::median(&rounds);
    let flooded = weigh(side, case, edge.pid(), samples, flood, lengths)?;
    let checked = match sides.front_tls {
        // The check's own call uses no TLS.
        true => 0,
        false => runner.check(ledger, &edge.url()).await,
    };
    Ok((flooded, checked))
}

fn call(runner: &Runner<'_>, contender: &Contender<'_>, phase: Phase) -> Result<Samples, Box<dyn Error>> {
    let outcome = runner.load(contender, phase)?;
    let cpu = outcome.cpu_seconds.get(EDGE).copied().unwrap_or_default();
    Ok(Samples {
        percent: cpu * 100.0 / outcome.seconds,
        p50_us: outcome.latency.p50_us,
        p99_us: outcome.latency.p99_us,
        errors: outcome.errors + outcome.unsent,
    })
}

/// One case against a fresh admin server.
async fn on_admin(
    runner: &Runner<'_>,
    lengths: &Lengths,
    ledger: &Ledger,
    key: &str,
    case: Option<&Case>,
    keys: PathBuf,
) -> Result<FloodResult, Box<dyn Error>> {
    let options = AdminOptions::new(&runner.fixture.program("tollgate-admin"), ledger.redis.url())
        .env("TOLLGATE_PLANS__FILE", PLANS);
    let admin = Admin::start(options);
    pin(admin.pid(), runner.fixture.cores.edge)?;
    let caller = Caller::new(&admin.url(), key);
    until_quiet(admin.pid())?;
    // The first requests of a process are its slowest.
    read(&caller, admin.pid(), lengths).await?;
    let flood = start(runner.fixture, case, admin.addr(), keys, lengths)?;
    forget_peak(&[admin.pid()])?;
    let mut rounds = Vec::new();
    for _ in 0..lengths.rounds {
        rounds.push(read(&caller, admin.pid(), lengths).await?);
    }
    let samples = Samples::median(&rounds);
    weigh(Side::Admin, case, admin.pid(), samples, flood, lengths)
}

/// Waits until the server has sealed the records that the floods of the edge left.
fn until_quiet(pid: u32) -> Result<(), Box<dyn Error>> {
    for _ in 0..QUIET_WITHIN_S {
        let before = cpu::of_process(pid)?;
        rest(1.0);
        if cpu::of_process(pid)? - before < QUIET_CPU_SECONDS {
            return Ok(());
        }
    }
    Err("the admin server is at work for too long".into())
}

/// Lists the agents, one request after the other, for one phase.
async fn read(caller: &Caller, pid: u32, lengths: &Lengths) -> Result<Samples, Box<dyn Error>> {
    let (mut latencies, mut errors) = (Vec::new(), 0);
    let before = cpu::of_process(pid)?;
    let started = Instant::now();
    let end = started + Duration::try_from_secs_f64(lengths.short_phase())?;
    while Instant::now() < end {
        let sent = Instant::now();
        match caller.try_send("GET", "/v1/agents", &[], "").await {
            Ok(reply) if reply.status == 200 => latencies.push(sent.elapsed().as_secs_f64() * 1e6),
            _ => errors += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
    let seconds = cpu::of_process(pid)? - before;
    latencies.sort_unstable_by(f64::total_cmp);
    let quantile = |of: f64| {
        let at = ((latencies.len() as f64 * of) as usize).min(latencies.len().saturating_sub(1));
        latencies.get(at).copied().unwrap_or(f64::NAN)
    };
    Ok(Samples {
        percent: seconds * 100.0 / started.elapsed().as_secs_f64(),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        errors,
    })
}

/// Starts the flood and gives it [`RISE`] to open its connections.
fn start(
    fixture: &Fixture,
    case: Option<&Case>,
    target: SocketAddr,
    keys: PathBuf,
    lengths: &Lengths,
) -> Result<Option<BackgroundProcess>, Box<dyn Error>> {
    let Some(case) = case else { return Ok(None) };
    let word = clap::ValueEnum::to_possible_value(&case.flood).ok_or("a flood without a name")?;
    let seconds = (RISE + calls_seconds(lengths) + MARGIN).ceil();
    let mut words: Vec<String> = [
        ("flood", word.get_name().to_owned()),
        ("target", target.to_string()),
        ("connections", case.connections.to_string()),
        ("seconds", seconds.to_string()),
        ("keys", keys.display().to_string()),
    ]
    .into_iter()
    .flat_map(|(name, value)| [format!("--{name}"), value])
    .collect();
    if case.spread {
        words.push("--spread".to_owned());
    }
    let flood = BackgroundProcess::start(&fixture.program("bench-flood"), &words)?;
    pin(flood.pid(), fixture.cores.load)?;
    // Real senders would have machines of their own.
    yield_core(flood.pid())?;
    rest(RISE);
    Ok(Some(flood))
}

fn weigh(
    side: Side,
    case: Option<&Case>,
    pid: u32,
    samples: Samples,
    flood: Option<BackgroundProcess>,
    lengths: &Lengths,
) -> Result<FloodResult, Box<dyn Error>> {
    let peak_kib = sum(&[pid], "VmHWM:")?;
    drop(flood);
    rest(lengths.rest_seconds);
    Ok(FloodResult {
        side,
        flood: case.map(|case| case.shown.to_owned()),
        peak_kib,
        after_kib: sum(&[pid], "VmRSS:")?,
        percent: samples.percent,
        p50_us: samples.p50_us,
        p99_us: samples.p99_us,
        errors: samples.errors,
    })
}
