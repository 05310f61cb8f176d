//! The tables of the frontier, of memory and of several edges.

use super::table::{NONE, Table, number, whole};
use crate::sections::edges::EdgeScaling;
use crate::sections::floods::{FloodResult, Side};
use crate::sections::frontier::{Curve, Frontier, Highest};
use crate::sections::memory::MemoryUse;

/// Table of the highest rates.
pub(crate) fn frontier(frontier: &Frontier) -> String {
    let first = frontier.curves.first();
    let bounds: Vec<f64> = first.map_or_else(Vec::new, |curve| {
        // The search begins with the loosest bound, the table with the tightest.
        curve.highest.iter().rev().map(|found| found.bound_ms).collect()
    });
    let bounds_shown = bounds.iter().map(|bound| format!("≤ {bound} ms"));
    let columns: Vec<String> = std::iter::once("requests/s with p99 added to direct".to_owned())
        .chain(bounds_shown)
        .chain(["closed loop".to_owned()])
        .collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&columns);
    for curve in &frontier.curves {
        let mut cells = vec![curve.name.shown().to_owned()];
        cells.extend(bounds.iter().map(|bound| highest(curve, *bound)));
        cells.push(whole(Some(curve.saturation)));
        table.row(&cells);
    }
    format!(
        "\n## Throughput frontier: 64 connections, open loop, no error\n\n![Frontier](frontier.svg)\n\n{}\nRates are 5 % \
         apart. A rate is good when one of two tries is; nothing may fail or stay unsent. `≥`: at the next rate the \
         provider and the load generator themselves were late by more than 1 ms, so it says what the rig can do, not \
         what the proxy can; `rig late`: they were so already at the lowest rate. On two \
         cores Redis shares one with both: there (c) ends where that core is full, before the edge's is.\n",
        table.text
    )
}

fn highest(curve: &Curve, bound_ms: f64) -> String {
    let found = curve.highest.iter().find(|found| found.bound_ms == bound_ms);
    match found {
        None => NONE.to_owned(),
        Some(Highest {
            rate: None,
            is_of_rig: true,
            ..
        }) => "rig late".to_owned(),
        Some(Highest { rate: None, .. }) => "none".to_owned(),
        Some(Highest {
            rate: Some(rate),
            is_of_rig,
            ..
        }) => format!("{}{rate:.0}", if *is_of_rig { "≥ " } else { "" }),
    }
}

pub(crate) fn memory(weighed: &[MemoryUse]) -> String {
    let mut table = Table::new(&[
        "MB resident",
        "idle",
        "peak, 64 × 1 KB",
        "afterwards",
        "of idle",
        "peak, 16 × 4 MB",
        "afterwards",
        "of idle",
    ]);
    for weighed in weighed {
        let megabytes = |kib: u64| number(Some(kib as f64 * 1024.0 / 1e6), 1);
        let of_idle = |kib: u64| number(Some(kib as f64 / weighed.idle_kib.max(1) as f64), 2);
        table.row(&[
            weighed.name.shown().to_owned(),
            megabytes(weighed.idle_kib),
            megabytes(weighed.loaded_kib),
            megabytes(weighed.recovered_kib),
            of_idle(weighed.recovered_kib),
            megabytes(weighed.large_kib),
            megabytes(weighed.large_recovered_kib),
            of_idle(weighed.large_recovered_kib),
        ]);
    }
    format!(
        "\n## Memory\n\n![Memory](memory.svg)\n\n{}\nIdle is after one call with each of 64 keys; peaks are the kernel's \
         own mark (`VmHWM`); nginx is its master and its worker together.\n",
        table.text
    )
}

pub(crate) fn edges(several: &[EdgeScaling]) -> String {
    let mut table = Table::new(&[
        "edges",
        "cores",
        "requests/s",
        "edge CPU-µs a request",
        "store CPU-µs a request",
        "race: approved",
        "denied",
        "due, USD",
        "charged, USD",
        "limits, USD",
        "agents overspent",
    ]);
    for EdgeScaling {
        edges,
        has_cores,
        row,
        race,
    } in several
    {
        table.row(&[
            edges.to_string(),
            if *has_cores { "own" } else { "shared" }.to_owned(),
            whole(Some(row.rate)),
            number(row.edge_us, 1),
            number(row.store_us, 1),
            race.approved.to_string(),
            race.denied.to_string(),
            dollars(race.due_nanos),
            dollars(race.charged_nanos),
            dollars(race.limit_nanos),
            race.overspent.to_string(),
        ]);
    }
    format!(
        "\n## Several edges on one store\n\n{}\nIn the race 64 connections over all edges spend the day's money of 8 \
         agents until they are denied. On shared cores requests/s say nothing about scaling.\n",
        table.text
    )
}

/// Attacks beside a well-behaved caller.
pub(crate) fn floods(flooded: &[FloodResult]) -> String {
    let mut table = Table::new(&[
        "flood",
        "server",
        "peak memory, MB",
        "afterwards, MB",
        "server, % of a core",
        "caller p50, ms",
        "p99, ms",
        "p99 of that alone",
        "errors",
    ]);
    for found in flooded {
        let alone = flooded
            .iter()
            .find(|other| other.side == found.side && other.flood.is_none());
        let megabytes = |kib: u64| number(Some(kib as f64 * 1024.0 / 1e6), 0);
        let millis = |us: f64| number(Some(us / 1e3), 2);
        let server = match found.side {
            Side::Edge => "edge",
            Side::EdgeTls => "edge, TLS",
            Side::Admin => "admin server",
        };
        table.row(&[
            found.flood.clone().unwrap_or_else(|| "none".to_owned()),
            server.to_owned(),
            megabytes(found.peak_kib),
            megabytes(found.after_kib),
            whole(Some(found.percent)),
            millis(found.p50_us),
            millis(found.p99_us),
            number(alone.map(|alone| found.p99_us / alone.p99_us), 1),
            found.errors.to_string(),
        ]);
    }
    format!(
        "\n## Floods\n\n{}\nA well-behaved caller beside each flood: 200 calls a second over 4 connections of the edge, over TLS one \
         call after the other on each of 4; one list after the other of the admin server. Each flood meets a fresh process.\n",
        table.text
    )
}

/// Formats nano-USD as USD, exactly.
fn dollars(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}
