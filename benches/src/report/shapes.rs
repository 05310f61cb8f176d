//! The tables of sizes, protocols and streams: CPU time of the proxies, and its ratios.

use super::table::{NONE, Table, number, whole};
use crate::contender::Name;
use crate::plot::size;
use crate::row::{Row, over, row};
use crate::sections::bodies::{Body, CONNECTIONS};
use crate::sections::protocols::ProtocolPair;
use crate::sections::streams::StreamLoad;
use gate_bench_rig::stream_wire::STREAM_EVENTS;

/// The columns of sizes and protocols.
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

pub(crate) fn streams(loads: &[StreamLoad]) -> String {
    let mut table = Table::new(&[
        "streams open",
        "ms between events",
        "proxy",
        "first event p50, µs",
        "p99, µs",
        "p50 added to (b)",
        "p99 added to (b)",
        "generator late, p99",
        "edge CPU-µs a stream",
        "lowest–highest round",
        "an event",
        "of (b)",
        "store CPU-µs a stream",
        "KiB a stream at the peak",
        "others, % of a core",
    ]);
    for load in loads {
        for row in &load.rows {
            table.row(&stream_cells(load, row));
        }
    }
    format!(
        "\n## Streams of 200 events\n\n{}\nStreams begin one after the other at a steady rate, as many as end. The callers \
         do not ask for usage: (c) asks in their place, drops that frame, settles, and lets the last event pass only \
         then. Memory is the kernel's mark of the peak less what was resident before the load.\n",
        table.text
    )
}

fn stream_cells(load: &StreamLoad, row: &Row) -> Vec<String> {
    let added = |quantile| {
        let added = load.added(row.name, Name::PassThrough, quantile);
        whole(added.filter(|_| row.name == Name::Tollgate))
    };
    let memory = load.kib_a_stream.iter().find(|(name, _)| *name == row.name);
    let range = row.edge_us_range;
    vec![
        load.streams.to_string(),
        (load.every_us as f64 / 1000.0).to_string(),
        row.name.shown().to_owned(),
        whole(Some(row.latency.p50_us)),
        whole(Some(row.latency.p99_us)),
        added(|row| row.latency.p50_us),
        added(|row| row.latency.p99_us),
        whole(Some(row.lateness.p99_us)),
        number(row.edge_us, 1),
        range.map_or_else(|| NONE.to_owned(), |(low, high)| format!("{low:.1}–{high:.1}")),
        number(row.edge_us.map(|us| us / STREAM_EVENTS as f64), 1),
        number(over(&load.rows, row.name, Name::PassThrough), 2),
        number(row.store_us, 1),
        number(memory.map(|(_, kib)| *kib), 1),
        whole(Some(row.others_percent)),
    ]
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
