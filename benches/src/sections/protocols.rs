//! HTTP/1.1 and HTTP/2, with and without TLS, on the side of the callers and on that of the provider.

use super::{Contenders, Outcome};
use crate::contender::Name;
use crate::fixture::Sides;
use crate::measure::Runner;
use crate::phase::{CONNECTIONS, Phase, STREAMS, Wire};
use crate::row::Row;
use crate::section::Lengths;
use serde::{Deserialize, Serialize};

/// Protocols of the callers, and whether the provider has TLS.
const SPOKEN: [(&str, Wire, bool); 6] = [
    ("HTTP/1.1", Wire::Clear, false),
    ("HTTP/1.1 over TLS", Wire::Tls, false),
    ("HTTP/2 over TLS, a connection a request", Wire::Http2(1), false),
    (
        "HTTP/2 over TLS, 8 requests a connection",
        Wire::Http2(STREAMS),
        false,
    ),
    ("HTTP/1.1", Wire::Clear, true),
    ("HTTP/2 over TLS, a connection a request", Wire::Http2(1), true),
];

/// Result for one pair of protocols.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProtocolPair {
    /// Protocol of the callers.
    pub(crate) front: String,
    /// Protocol to the provider.
    pub(crate) back: String,
    pub(crate) rows: Vec<Row>,
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    4.0 * 5.0 + (SPOKEN.len() * Name::PROXIES.len() * lengths.short_rounds) as f64 * lengths.short_phase()
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<ProtocolPair>> {
    let (mut found, mut checked) = (Vec::new(), 0);
    // One set of servers for each pair of sides; a set is ended before the next one starts.
    for (front_tls, back_tls) in [(false, false), (true, false), (false, true), (true, true)] {
        let servers = Contenders::start(runner.fixture, Sides { front_tls, back_tls }).await?;
        let contenders = servers.contenders();
        for (front, wire, _) in SPOKEN
            .iter()
            .filter(|(_, wire, back)| (*wire != Wire::Clear, *back) == (front_tls, back_tls))
        {
            let phase = Phase {
                wire: *wire,
                connections: CONNECTIONS,
                ..lengths.short()
            };
            let rows = runner.rounds(lengths.short_rounds, &contenders, phase)?;
            let back = if back_tls { "HTTP/1.1 over TLS" } else { "HTTP/1.1" };
            found.push(ProtocolPair {
                front: (*front).to_owned(),
                back: back.to_owned(),
                rows,
            });
        }
        checked += check(runner, &servers, front_tls).await?;
    }
    Ok((found, checked))
}

/// Checks the charges in the ledger, through an edge without TLS.
async fn check(
    runner: &Runner<'_>,
    servers: &Contenders,
    front_tls: bool,
) -> Result<u64, Box<dyn std::error::Error>> {
    if !front_tls {
        return Ok(runner.check(&servers.ledger, &servers.edge.url()).await);
    }
    let fixture = runner.fixture;
    let provider = fixture.provider(Sides::default())?;
    let plain = fixture.edge(fixture.edge_setup(), &servers.ledger, &provider, Sides::default())?;
    Ok(runner.check(&servers.ledger, &plain.url()).await)
}
