//! Answers that are streams of 200 events: the time to the first event, CPU time and memory. nginx and the pass-through
//! forward the bytes; (c) holds the estimate first, reads the usage in the stream and settles before its end.

use super::latency::Quantile;
use super::{Contenders, Outcome};
use crate::contender::{Contender, EDGE, Name};
use crate::fixture::Sides;
use crate::measure::Runner;
use crate::phase::Phase;
use crate::row::{Row, row};
use crate::section::Lengths;
use gate_bench_rig::memory::{forget_peak, sum};
use gate_bench_rig::stream_wire::STREAM_EVENTS;
use gate_bench_rig::streams::PERIOD_EVENTS;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Open streams, and the microseconds between two events of a stream.
const LOADS: [(usize, u64); 3] = [(ONE, 250), (SOME, 5_000), (MANY, 100_000)];
/// One stream after the other: the latency of a single caller.
pub(crate) const ONE: usize = 1;
/// Number of streams at which CPU time and the time to the first event are compared.
pub(crate) const SOME: usize = 64;
/// Number of streams at which memory is read.
pub(crate) const MANY: usize = 2000;
/// Factor for the length of phases with one stream, since few streams begin in them.
const LONGER: f64 = 2.0;
/// Warm-up with many streams, in seconds: all of them begin within it.
const MANY_WARM_UP: f64 = 3.0;
/// Time after the window in which the last streams end, in seconds.
const RUN_OUT: f64 = 1.0;

/// Result for one number of open streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamLoad {
    /// Streams that are open.
    pub(crate) streams: usize,
    /// Microseconds between two events.
    pub(crate) every_us: u64,
    /// One row for each contender; a latency is the time to the first event.
    pub(crate) rows: Vec<Row>,
    /// Peak of the resident memory for each stream, in KiB, by contender.
    pub(crate) kib_a_stream: Vec<(Name, f64)>,
}

impl StreamLoad {
    /// Returns the time that `name` adds to the first event of `base`, in microseconds.
    pub(crate) fn added(&self, name: Name, base: Name, quantile: Quantile) -> Option<f64> {
        Some(quantile(row(&self.rows, name)?) - quantile(row(&self.rows, base)?))
    }
}

fn phase(lengths: &Lengths, streams: usize, every_us: u64) -> Phase {
    // Each connection pauses between two streams.
    let connections = streams * PERIOD_EVENTS as usize / STREAM_EVENTS as usize;
    let closed = lengths.closed();
    Phase {
        connections,
        stream_every_us: Some(every_us),
        seconds: closed.seconds * if streams == ONE { LONGER } else { 1.0 },
        warm_up: if streams == MANY {
            MANY_WARM_UP
        } else {
            closed.warm_up
        },
        ..closed
    }
}

/// Rounds of a load.
const fn rounds(lengths: &Lengths, streams: usize) -> usize {
    match streams {
        MANY => lengths.short_rounds,
        _ => lengths.rounds,
    }
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    let loads = LOADS.map(|(streams, every_us)| {
        let phase = phase(lengths, streams, every_us);
        rounds(lengths, streams) as f64 * (phase.warm_up + phase.seconds + RUN_OUT + 0.3)
    });
    6.0 + Name::PROXIES.len() as f64 * loads.iter().sum::<f64>()
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<StreamLoad>> {
    let servers = Contenders::start(runner.fixture, Sides::default()).await?;
    let contenders = servers.contenders();
    let mut found = Vec::new();
    for (streams, every_us) in LOADS {
        let phase = phase(lengths, streams, every_us);
        let before = resident(&contenders, "VmRSS:")?;
        for contender in &contenders {
            forget_peak(&pids(contender))?;
        }
        let rows = runner.rounds(rounds(lengths, streams), &contenders, phase)?;
        let peak = resident(&contenders, "VmHWM:")?;
        let grown = before
            .iter()
            .zip(&peak)
            .map(|((name, before), (_, peak))| (*name, peak.saturating_sub(*before) as f64 / streams as f64));
        found.push(StreamLoad {
            streams,
            every_us,
            rows,
            kib_a_stream: grown.collect(),
        });
    }
    let checked = runner.check(&servers.ledger, &servers.edge.url()).await;
    Ok((found, checked))
}

fn pids(contender: &Contender<'_>) -> Vec<u32> {
    let edges = contender.watched.iter().filter(|watched| watched.name == EDGE);
    edges.map(|watched| watched.pid).collect()
}

/// A line of `/proc/PID/status` of each contender, in KiB.
fn resident(contenders: &[Contender<'_>], line: &str) -> Result<Vec<(Name, u64)>, Box<dyn Error>> {
    let each = contenders.iter();
    each.map(|contender| Ok((contender.name, sum(&pids(contender), line)?)))
        .collect()
}
