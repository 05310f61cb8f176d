//! The plots beside the tables.

mod chart;

use crate::contender::Name;
use crate::results::{Found, Results};
use crate::row::Row;
use crate::sections::bodies::Body;
use crate::sections::frontier::Frontier;
use crate::sections::latency::Paced;
use crate::sections::memory::MemoryUse;
use chart::{Bars, Curve, Drawn, Lines};
use std::error::Error;

/// Smallest added latency that is drawn, in milliseconds: below it the axis would show noise.
const ADDED_MS_MIN: f64 = 0.1;

/// Returns the plots of all measured sections, as file names and contents.
///
/// # Errors
/// A plot that cannot be drawn.
pub(crate) fn all(results: &Results) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let sections = results.sections.iter();
    let plots = sections.flat_map(|measured| match &measured.found {
        Found::FullLoad(rows) => vec![("cpu.svg".to_owned(), cpu(rows))],
        Found::Frontier(found) => vec![("frontier.svg".to_owned(), frontier(found))],
        Found::Latency(found) => found.iter().map(latency).collect(),
        Found::Bodies(found) => vec![("bodies.svg".to_owned(), bodies(found))],
        Found::Memory(found) => vec![("memory.svg".to_owned(), memory(found))],
        Found::Protocols(_)
        | Found::Edges(_)
        | Found::HotAccount(_)
        | Found::Streams(_)
        | Found::Floods(_)
        | Found::Instructions(_)
        | Found::Nothing => Vec::new(),
    });
    plots.map(|(name, drawn)| Ok((name, drawn?))).collect()
}

/// A contender's curve: in every plot it has the same colour and mark.
fn drawn(name: Name, points: Vec<(f64, f64)>) -> Curve {
    let series = match name {
        Name::Nginx => 0,
        Name::PassThrough => 1,
        Name::Direct => 3,
        _ => 2,
    };
    Curve {
        name: name.short(),
        series,
        points,
    }
}

fn cpu(rows: &[Row]) -> Drawn {
    let bar = |row: &Row| {
        let parts = vec![row.edge_us?, row.store_us.unwrap_or_default()];
        Some((row.name.shown().to_owned(), parts))
    };
    Bars {
        title: "CPU time a request, 64 connections".to_owned(),
        axis: "CPU-µs a request",
        parts: vec!["proxy", "store"],
        bars: rows.iter().filter_map(bar).collect(),
    }
    .draw()
}

fn frontier(found: &Frontier) -> Drawn {
    let curve = |curve: &crate::sections::frontier::Curve| {
        let points = curve
            .points
            .iter()
            .filter(|point| point.is_whole && point.is_within_rig());
        let points = points.map(|point| (point.rate, point.added_ms().max(ADDED_MS_MIN)));
        drawn(curve.name, points.collect())
    };
    Lines {
        title: "What each rate adds to the 99th percentile, 64 connections, open loop".to_owned(),
        x: "requests a second",
        y: "p99 added to direct, ms",
        places: Vec::new(),
        bounds: [1.0, 5.0, 10.0]
            .map(|bound| (bound, format!("{bound} ms")))
            .into(),
        curves: found.curves.iter().map(curve).collect(),
    }
    .draw()
}

fn latency(paced: &Paced) -> (String, Drawn) {
    let names = ["p50", "p90", "p99", "p99.9"];
    let curve = |row: &Row| {
        let found = row.latency;
        let values = [found.p50_us, found.p90_us, found.p99_us, found.p999_us];
        let points = values
            .into_iter()
            .enumerate()
            .map(|(at, value)| (at as f64, value));
        drawn(row.name, points.collect())
    };
    // Four curves can be distinguished; the table has the fifth.
    let shown = paced.rows.iter().filter(|row| row.name != Name::TollgateSocket);
    let connections = match paced.connections {
        1 => "1 connection".to_owned(),
        several => format!("{several} connections"),
    };
    let lines = Lines {
        title: format!(
            "Latency at {} requests a second over {connections}, open loop",
            paced.rate
        ),
        x: "quantile",
        y: "µs from the moment at which it was due",
        places: names.map(str::to_owned).into(),
        bounds: Vec::new(),
        curves: shown.map(curve).collect(),
    };
    (format!("latency-{}.svg", paced.connections), lines.draw())
}

fn bodies(found: &[Body]) -> Drawn {
    let curve = |name: Name| {
        let point = |(at, body): (usize, &Body)| {
            let row = crate::row::row(&body.rows, name)?;
            Some((at as f64, row.edge_us?))
        };
        drawn(name, found.iter().enumerate().filter_map(point).collect())
    };
    let places = found.iter().map(|body| size(body.bytes));
    Lines {
        title: "CPU time of the proxy a request, by the size of the request".to_owned(),
        x: "body of the request",
        y: "CPU-µs a request",
        places: places.collect(),
        bounds: Vec::new(),
        curves: Name::PROXIES.map(curve).into(),
    }
    .draw()
}

/// Formats a size: `16 KB`.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0x10_0000.. => format!("{} MB", bytes >> 20),
        _ => format!("{} KB", bytes >> 10),
    }
}

fn memory(found: &[MemoryUse]) -> Drawn {
    let bars = found.iter().flat_map(|weighed| {
        let bar = |what: &str, kib: u64| {
            let megabytes = kib as f64 * 1024.0 / 1e6;
            (format!("{}, {what}", weighed.name.short()), vec![megabytes])
        };
        [
            bar("idle", weighed.idle_kib),
            bar("full load", weighed.loaded_kib),
            bar("after it", weighed.recovered_kib),
            bar("requests of 4 MB", weighed.large_kib),
            bar("after them", weighed.large_recovered_kib),
        ]
    });
    Bars {
        title: "Resident memory".to_owned(),
        axis: "MB",
        parts: vec!["resident"],
        bars: bars.collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::everything;

    #[test]
    fn there_is_a_plot_for_each_part_and_its_axes_have_units() {
        let plots = all(&everything()).unwrap();
        let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "cpu.svg",
            "frontier.svg",
            "latency-1.svg",
            "latency-64.svg",
            "bodies.svg",
            "memory.svg",
        ];
        assert_eq!(names, expected);
        let units = [
            "CPU-µs a request",
            "ms",
            "µs from",
            "µs from",
            "CPU-µs a request",
            "MB",
        ];
        for ((name, svg), unit) in plots.iter().zip(units) {
            assert!(svg.contains(unit), "{name}: {unit}");
            assert!(svg.contains("Tollgate"), "{name}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        }
        let empty = Results::new(Vec::new());
        assert!(all(&empty).unwrap().is_empty());
        assert!(
            [cpu(&[]), bodies(&[])]
                .map(Result::unwrap)
                .iter()
                .all(|svg| svg.contains("</svg>"))
        );
    }

    #[test]
    fn sizes_are_printed_shortly() {
        assert_eq!(
            [1 << 10, 256 << 10, 4 << 20].map(size),
            ["1 KB", "256 KB", "4 MB"]
        );
    }
}
