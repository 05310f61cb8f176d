//! The tables of the closed loop and of the fixed rates.

use super::table::{NONE, Table, number, whole};
use crate::contender::Name;
use crate::row::Row;
use crate::sections::hot_account::HotLoad;
use crate::sections::instructions::CallInstructions;
use crate::sections::latency::{Paced, Quantile};

/// The closed loop.
pub(crate) fn full_load(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "",
        "requests/s",
        "edge CPU-µs a request",
        "lowest–highest round",
        "store CPU-µs a request",
        "edge, % of a core",
        "store, provider and load, % of a core",
        "others, % of a core",
    ]);
    for row in rows {
        let range = row.edge_us_range;
        table.row(&[
            row.name.shown().to_owned(),
            whole(Some(row.rate)),
            number(row.edge_us, 1),
            range.map_or_else(|| NONE.to_owned(), |(low, high)| format!("{low:.1}–{high:.1}")),
            number(row.store_us, 1),
            whole(row.edge_percent),
            whole(Some(row.rig_percent)),
            whole(Some(row.others_percent)),
        ]);
    }
    format!(
        "\n## Full load: 64 connections, closed loop, requests of 1 KB\n\n![CPU time a request](cpu.svg)\n\n{}\n\\* With \
         a connection a call: the edge does not read the body of who has no key, and closes.\n",
        table.text
    )
}

/// Instructions of a call and of a stream.
pub(crate) fn instructions(counted: &[CallInstructions]) -> String {
    let mut table = Table::new(&["", "", "instructions", "over the pass-through", "counted"]);
    for found in counted {
        let mut bases = counted.iter();
        let base = bases
            .find(|base| base.name == Name::PassThrough && base.streamed == found.streamed)
            .map(CallInstructions::of_one);
        let ratio = base.map(|base| found.of_one() as f64 / base.max(1) as f64);
        table.row(&[
            if found.streamed { "a stream" } else { "a call" }.to_owned(),
            found.name.shown().to_owned(),
            found.of_one().to_string(),
            number(ratio, 2),
            found.calls.to_string(),
        ]);
    }
    format!(
        "\n## Instructions of a call and of a stream, under callgrind\n\n16 connections: requests of 1 KB in a closed loop; \
         streams of 200 events, one each 10 ms.\n\n{}\nOutside of the kernel, and without what the program takes while nobody calls; \
         hashes are done in software there.\n",
        table.text
    )
}

/// One fixed rate.
pub(crate) fn paced(paced: &Paced) -> String {
    let connections = match paced.connections {
        1 => "1 connection".to_owned(),
        several => format!("{several} connections"),
    };
    let half = if paced.is_half_of_saturation {
        " (half of what (c) can do)"
    } else {
        ""
    };
    let mut table = Table::new(&[
        "µs from the moment at which it was due",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p50 added to direct",
        "p99 added to direct",
        "p50 added to (b)",
        "p99 added to (b)",
        "generator late, p99",
        "edge CPU-µs a request",
        "store CPU-µs a request",
        "store, provider and load, % of a core",
    ]);
    let (p50, p99): (Quantile, Quantile) = (|row| row.latency.p50_us, |row| row.latency.p99_us);
    for row in &paced.rows {
        let found = row.latency;
        let added = |base, quantile, is_wanted: bool| {
            whole(paced.added(row.name, base, quantile).filter(|_| is_wanted))
        };
        let (is_proxy, is_ours) = (
            row.name != Name::Direct,
            matches!(row.name, Name::Tollgate | Name::TollgateSocket),
        );
        table.row(&[
            row.name.shown().to_owned(),
            whole(Some(found.p50_us)),
            whole(Some(found.p90_us)),
            whole(Some(found.p99_us)),
            whole(Some(found.p999_us)),
            added(Name::Direct, p50, is_proxy),
            added(Name::Direct, p99, is_proxy),
            added(Name::PassThrough, p50, is_ours),
            added(Name::PassThrough, p99, is_ours),
            whole(Some(row.lateness.p99_us)),
            number(row.edge_us, 1),
            number(row.store_us, 1),
            whole(Some(row.rig_percent)),
        ]);
    }
    format!(
        "\n## Fixed rate: {} requests/s{half} over {connections}, open loop\n\n![Latency](latency-{}.svg)\n\n{}",
        paced.rate, paced.connections, table.text
    )
}

pub(crate) fn hot_account(heats: &[HotLoad]) -> String {
    let mut table = Table::new(&[
        "",
        "requests/s",
        "edge CPU-µs a request",
        "store CPU-µs a request",
        "p50, µs",
        "p99, µs",
        "p99.9, µs",
    ]);
    for HotLoad { whose, row } in heats {
        table.row(&[
            whose.clone(),
            whole(Some(row.rate)),
            number(row.edge_us, 1),
            number(row.store_us, 1),
            whole(Some(row.latency.p50_us)),
            whole(Some(row.latency.p99_us)),
            whole(Some(row.latency.p999_us)),
        ]);
    }
    format!(
        "\n## A hot account\n\n{}\nThe first three are closed loops over 64 connections: latencies are those of a full store. The \
         neighbour is an agent of another account that calls 100 times a second over a connection of its own, through the \
         same edge and store; beside others it meets both as full as they get.\n",
        table.text
    )
}
