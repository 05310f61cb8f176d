//! Latency at fixed rates, from the moment at which each request was due: over one connection, over 16, and over 64 at
//! half of Tollgate's saturation rate.

use super::{Contenders, Outcome};
use crate::contender::Name;
use crate::fixture::{Sides, tollgate};
use crate::measure::Runner;
use crate::phase::{CONNECTIONS, Phase};
use crate::row::{Row, row};
use crate::section::Lengths;
use serde::{Deserialize, Serialize};

/// Fixed loads, as connections and requests a second.
const FIXED: [(usize, f64); 2] = [(1, 500.0), (16, 1000.0)];
/// Contenders at every rate, the provider itself included. Over one connection, (c) with a Unix socket is measured too.
const CONTENDERS: usize = 4;

/// A fixed rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Paced {
    /// Connections.
    pub(crate) connections: usize,
    /// Requests a second.
    pub(crate) rate: f64,
    /// Whether the rate is half of Tollgate's saturation rate.
    pub(crate) is_half_of_saturation: bool,
    pub(crate) rows: Vec<Row>,
}

/// A quantile of a row, in microseconds.
pub(crate) type Quantile = fn(&Row) -> f64;

impl Paced {
    /// By how much a quantile of `name` is above that of `base`, in microseconds.
    pub(crate) fn added(&self, name: Name, base: Name, quantile: Quantile) -> Option<f64> {
        Some(quantile(row(&self.rows, name)?) - quantile(row(&self.rows, base)?))
    }
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    6.0 + (((FIXED.len() + 1) * CONTENDERS + 1) * lengths.rounds) as f64 * lengths.phase()
}

pub(crate) async fn run(
    runner: &Runner<'_>,
    lengths: &Lengths,
    saturation: Option<f64>,
) -> Outcome<Vec<Paced>> {
    let servers = Contenders::start(runner.fixture, Sides::default()).await?;
    let mut contenders = vec![servers.direct()];
    contenders.extend(servers.contenders());
    let half = match (saturation, contenders.last()) {
        (Some(rate), _) => rate / 2.0,
        (None, Some(tollgate)) => {
            let found = runner.load(tollgate, lengths.closed())?;
            found.answered as f64 / found.seconds / 2.0
        }
        (None, None) => 0.0,
    };
    let (fixture, ledger, provider) = (runner.fixture, &servers.ledger, &servers.provider);
    let edge = fixture.edge(
        fixture.edge_setup().over_socket(),
        ledger,
        provider,
        Sides::default(),
    )?;
    let beside = tollgate(Name::TollgateSocket, &[&edge], ledger, provider);
    let mut found = Vec::new();
    let rates = FIXED.map(|(connections, rate)| (connections, rate, false));
    for (connections, rate, is_half_of_saturation) in
        rates
            .into_iter()
            .chain([(CONNECTIONS, half.round().max(1.0), true)])
    {
        let phase: Phase = lengths.open(connections, rate);
        let also = (connections == 1).then(|| beside.clone());
        let measured: Vec<_> = contenders.iter().cloned().chain(also).collect();
        let rows = runner.rounds(lengths.rounds, &measured, phase)?;
        found.push(Paced {
            connections,
            rate,
            is_half_of_saturation,
            rows,
        });
    }
    let checked = runner.check(&servers.ledger, &servers.edge.url()).await;
    Ok((found, checked))
}
