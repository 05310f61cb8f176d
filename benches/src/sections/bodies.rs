//! Requests of 1 KB to 4 MB in a closed loop. Every body is forwarded whole, and the provider reads it to its end.

use super::{Contenders, Outcome};
use crate::contender::Name;
use crate::fixture::Sides;
use crate::measure::Runner;
use crate::phase::Phase;
use crate::row::Row;
use crate::section::Lengths;
use serde::{Deserialize, Serialize};

/// The sizes, in bytes.
pub(crate) const SIZES: [usize; 5] = [1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Requests under way at once: enough to keep a core busy with the smallest bodies, without needless memory for the
/// largest.
pub(crate) const CONNECTIONS: usize = 16;

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Body {
    /// Size of the body.
    pub(crate) bytes: usize,
    pub(crate) rows: Vec<Row>,
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    6.0 + (SIZES.len() * Name::PROXIES.len() * lengths.short_rounds) as f64 * lengths.short_phase()
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<Body>> {
    let servers = Contenders::start(runner.fixture, Sides::default()).await?;
    let contenders = servers.contenders();
    let mut found = Vec::new();
    for bytes in SIZES {
        let phase = Phase {
            connections: CONNECTIONS,
            body_bytes: bytes,
            ..lengths.short()
        };
        let rows = runner.rounds(lengths.short_rounds, &contenders, phase)?;
        found.push(Body { bytes, rows });
    }
    let checked = runner.check(&servers.ledger, &servers.edge.url()).await;
    Ok((found, checked))
}
