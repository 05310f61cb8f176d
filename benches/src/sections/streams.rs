//! Answers that are streams of 200 events: the time to the first event, CPU time and memory. nginx and the pass-through
//! pass the bytes on; (c) holds the estimate first, reads the usage in the stream and settles before its end.

use super::memory::{forget_peak, sum};
use super::{Contenders, Outcome};
use crate::contender::{Contender, EDGE, Name};
use crate::measure::{Phase, Runner};
use crate::results::Found;
use crate::row::Row;
use crate::section::Lengths;
use crate::stage::Sides;
use gate_bench_rig::wire::STREAM_EVENTS;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Streams at once, and the milliseconds between two of their events.
const LOADS: [(usize, u64); 3] = [(FEW, 10), (64, 5), (MANY, 100)];
/// Streams at once where the time to the first event is looked at.
pub(crate) const FEW: usize = 16;
/// Streams at once where memory is looked at.
pub(crate) const MANY: usize = 2000;

/// One number of streams at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamLoad {
    /// Streams at once.
    pub(crate) streams: usize,
    /// Milliseconds between two events.
    pub(crate) every_ms: u64,
    /// What was found; latencies are times to the first event.
    pub(crate) rows: Vec<Row>,
    /// Resident memory that a stream took at the peak, in KiB, by contender.
    pub(crate) kib_a_stream: Vec<(Name, f64)>,
}

impl StreamLoad {
    /// What `name` adds to `other` until the first event, in microseconds.
    pub(crate) fn added(&self, name: Name, other: Name, of: impl Fn(&Row) -> f64) -> Option<f64> {
        let find = |name| self.rows.iter().find(|row| row.name == name);
        Some(of(find(name)?) - of(find(other)?))
    }
}

fn phase(lengths: &Lengths, streams: usize, every_ms: u64) -> Phase {
    Phase {
        connections: streams,
        stream_every_ms: Some(every_ms),
        ..lengths.closed()
    }
}

/// Rounds of a load: one of many streams, whose length is most of the time.
const fn rounds(lengths: &Lengths, streams: usize) -> usize {
    if streams == MANY { 1 } else { lengths.short_rounds }
}

/// About how long it takes, in seconds. Streams that have begun are read to their end.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    let loads = LOADS.map(|(streams, every_ms)| {
        let phase = phase(lengths, streams, every_ms);
        let one = phase.warm_up + phase.seconds + STREAM_EVENTS as f64 * every_ms as f64 / 1000.0;
        rounds(lengths, streams) as f64 * one
    });
    6.0 + Name::PROXIES.len() as f64 * loads.iter().sum::<f64>()
}

/// Measures it.
pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome {
    let servers = Contenders::start(runner.stage, Sides::default()).await?;
    let contenders = servers.contenders();
    let mut found = Vec::new();
    for (streams, every_ms) in LOADS {
        let phase = phase(lengths, streams, every_ms);
        let idle = peaks(&contenders, "VmRSS:")?;
        for contender in &contenders {
            forget_peak(&pids(contender))?;
        }
        let rows = runner.rounds(rounds(lengths, streams), &contenders, phase)?;
        let peak = peaks(&contenders, "VmHWM:")?;
        let grown = idle
            .iter()
            .zip(&peak)
            .map(|((name, idle), (_, peak))| (*name, peak.saturating_sub(*idle) as f64 / streams as f64));
        found.push(StreamLoad {
            streams,
            every_ms,
            rows,
            kib_a_stream: grown.collect(),
        });
    }
    let checked = runner.check(&servers.ledger, &servers.edge.url()).await;
    Ok((Found::Streams(found), checked))
}

fn pids(contender: &Contender<'_>) -> Vec<u32> {
    let edges = contender.watched.iter().filter(|watched| watched.name == EDGE);
    edges.map(|watched| watched.pid).collect()
}

fn peaks(contenders: &[Contender<'_>], line: &str) -> Result<Vec<(Name, u64)>, Box<dyn Error>> {
    let each = contenders.iter();
    each.map(|contender| Ok((contender.name, sum(&pids(contender), line)?)))
        .collect()
}
