//! The tables of sizes and protocols: CPU time of the proxies, and what it is of each other.

use super::table::{Table, number};
use crate::contender::Name;
use crate::plot::size;
use crate::row::{Row, over, row};
use crate::sections::bodies::{Body, CONNECTIONS};
use crate::sections::protocols::ProtocolPair;

/// The columns of both.
const COLUMNS: [&str; 5] = [
    "(a) nginx, CPU-µs",
    "(b) pass-through, CPU-µs",
    "(c) Tollgate, CPU-µs",
    "c/b",
    "c/a",
];

fn cells(rows: &[Row]) -> Vec<String> {
    let edges = Name::PROXIES.map(|name| number(row(rows, name).and_then(|row| row.edge_us), 1));
    let ratios = [Name::PassThrough, Name::Nginx].map(|base| number(over(rows, Name::Tollgate, base), 2));
    edges.into_iter().chain(ratios).collect()
}

/// Sizes of the request.
pub(crate) fn bodies(bodies: &[Body]) -> String {
    let mut table = Table::new(&[&["body of the request"], COLUMNS.as_slice()].concat());
    for body in bodies {
        table.row(&[vec![size(body.bytes)], cells(&body.rows)].concat());
    }
    format!(
        "\n## Size of the request: {CONNECTIONS} connections, closed loop\n\n![CPU time by size](bodies.svg)\n\n{}\n\
         The provider reads every body to its end. nginx and the pass-through pass it on as it comes; (c) has to have it \
         whole before it decides.\n",
        table.text
    )
}

/// Versions of HTTP, and TLS.
pub(crate) fn protocols(spoken: &[ProtocolPair]) -> String {
    let mut table = Table::new(&[&["callers speak", "the provider speaks"], COLUMNS.as_slice()].concat());
    for spoken in spoken {
        let names = vec![spoken.front.clone(), spoken.back.clone()];
        table.row(&[names, cells(&spoken.rows)].concat());
    }
    format!(
        "\n## Protocols: 64 requests at once, closed loop, requests of 1 KB\n\n{}\nTLS 1.3 with a private authority, \
         verified on both sides, connections kept. None of the three speaks HTTP/2 to the provider: (c) cannot, nginx \
         cannot either, and the pass-through is configured as they are. HTTP/2 without TLS is not measured.\n",
        table.text
    )
}
