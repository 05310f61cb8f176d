//! The targets, and whether they are met. A missed target is reported and fails nothing.

use crate::contender::Name;
use crate::results::{Found, Results};
use crate::row::{over, row};
use crate::section::Section;
use crate::sections::memory::MemoryUse;
use crate::sections::streams::{MANY, SOME, StreamLoad};
use serde::{Deserialize, Serialize};

/// Denials that the store decides on.
const DENIED_BY_STORE: [Name; 4] = [
    Name::DeniedByDay,
    Name::DeniedByFreeze,
    Name::DeniedByRate,
    Name::DeniedByRevocation,
];
/// The size of a request for which there is a target.
const LARGE_BYTES: usize = 1 << 20;
/// Fewest cores at which load, provider and store have one each. Below it, a 99th percentile at half of saturation says
/// little about the edge.
const CORES_FOR_P99: usize = 4;
/// Bytes of a KiB in MB.
const MB_PER_KIB: f64 = 1024.0 / 1e6;
/// Bytes of a KiB in KB.
const KB_PER_KIB: f64 = 1.024;

/// One target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) what: String,
    /// Measured value; `None` when it was not measured.
    pub(crate) found: Option<f64>,
    /// The largest value that is good.
    pub(crate) limit: f64,
    /// Unit of both values.
    pub(crate) unit: String,
    /// Whether the target is met; not if it was not measured.
    pub(crate) is_met: bool,
}

fn verdict(what: &str, found: Option<f64>, limit: f64, unit: &str) -> Verdict {
    Verdict {
        what: what.to_owned(),
        found,
        limit,
        unit: unit.to_owned(),
        is_met: found.is_some_and(|found| found <= limit),
    }
}

/// Evaluates all targets.
pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut all = of_full_load(results);
    let at_one_connection = |connections, _| connections == 1;
    all.extend([
        verdict(
            "p50 added to the pass-through, 1 connection",
            paced(results, at_one_connection, |row| row.latency.p50_us),
            250.0,
            "µs",
        ),
        verdict(
            "edge CPU a request of 1 MB over the pass-through",
            large(results),
            1.5,
            "×",
        ),
    ]);
    all.extend(of_memory(results));
    all.extend(of_streams(results));
    if results.cores() >= CORES_FOR_P99 {
        all.push(verdict(
            "p99 added to the pass-through, half of saturation",
            paced(results, |_, is_half| is_half, |row| row.latency.p99_us),
            1000.0,
            "µs",
        ));
    }
    all
}

/// CPU time of edge and store, closed loop.
fn of_full_load(results: &Results) -> Vec<Verdict> {
    let full = results.full_load();
    let store = |name| row(full, name)?.store_us;
    let denied = DENIED_BY_STORE.iter().filter_map(|name| store(*name));
    vec![
        verdict(
            "edge CPU a request over the pass-through",
            over(full, Name::Tollgate, Name::PassThrough),
            1.25,
            "×",
        ),
        verdict(
            "edge CPU a request over nginx",
            over(full, Name::Tollgate, Name::Nginx),
            2.6,
            "×",
        ),
        verdict("store CPU an approved call", store(Name::Tollgate), 40.0, "µs"),
        verdict(
            "store CPU a denied call, the dearest denial",
            denied.max_by(f64::total_cmp),
            20.0,
            "µs",
        ),
    ]
}

fn of_memory(results: &Results) -> [Verdict; 3] {
    let memory = memory(results);
    let over_idle =
        |kib: fn(&MemoryUse) -> u64| memory.map(|found| kib(found) as f64 / (found.idle_kib.max(1)) as f64);
    [
        verdict(
            "resident memory under full load, requests of 1 KB",
            memory.map(|found| found.loaded_kib as f64 * MB_PER_KIB),
            40.0,
            "MB",
        ),
        verdict(
            "resident memory after full load, over idle",
            over_idle(|found| found.recovered_kib),
            1.1,
            "×",
        ),
        verdict(
            "resident memory after requests of 4 MB, over idle",
            over_idle(|found| found.large_recovered_kib),
            1.1,
            "×",
        ),
    ]
}

fn of_streams(results: &Results) -> [Verdict; 4] {
    let (pass, tollgate) = (Name::PassThrough, Name::Tollgate);
    let kib_a_stream = || {
        let found = &streams(results, MANY)?.kib_a_stream;
        Some(found.iter().find(|(name, _)| *name == tollgate)?.1)
    };
    [
        verdict(
            "first event of a stream beside 64, p50 added to the pass-through",
            first_event(results, |row| row.latency.p50_us),
            300.0,
            "µs",
        ),
        verdict(
            "first event of a stream beside 64, p99 added to the pass-through",
            first_event(results, |row| row.latency.p99_us),
            500.0,
            "µs",
        ),
        verdict(
            "edge CPU a stream of 200 events over the pass-through",
            streams(results, SOME).and_then(|load| over(&load.rows, tollgate, pass)),
            1.25,
            "×",
        ),
        verdict(
            "resident memory a stream, of 2,000",
            kib_a_stream().map(|kib| kib * KB_PER_KIB),
            40.0,
            "KB",
        ),
    ]
}

fn memory(results: &Results) -> Option<&MemoryUse> {
    match results.found(Section::Memory)? {
        Found::Memory(weighed) => weighed.iter().find(|found| found.name == Name::Tollgate),
        _ => None,
    }
}

fn streams(results: &Results, at_once: usize) -> Option<&StreamLoad> {
    match results.found(Section::Streams)? {
        Found::Streams(loads) => loads.iter().find(|load| load.streams == at_once),
        _ => None,
    }
}

fn first_event(results: &Results, quantile: crate::sections::latency::Quantile) -> Option<f64> {
    streams(results, SOME)?.added(Name::Tollgate, Name::PassThrough, quantile)
}

fn large(results: &Results) -> Option<f64> {
    match results.found(Section::Bodies)? {
        Found::Bodies(bodies) => {
            let body = bodies.iter().find(|body| body.bytes == LARGE_BYTES)?;
            over(&body.rows, Name::Tollgate, Name::PassThrough)
        }
        _ => None,
    }
}

fn paced(
    results: &Results,
    is_wanted: fn(usize, bool) -> bool,
    quantile: crate::sections::latency::Quantile,
) -> Option<f64> {
    match results.found(Section::Latency)? {
        Found::Latency(paced) => paced
            .iter()
            .find(|paced| is_wanted(paced.connections, paced.is_half_of_saturation))?
            .added(Name::Tollgate, Name::PassThrough, quantile),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::everything;

    #[test]
    fn every_target_is_compared_with_what_was_measured() {
        let found: Vec<_> = verdicts(&everything())
            .into_iter()
            .map(|verdict| {
                (
                    verdict.found.map(|found| (found * 100.0).round() / 100.0),
                    verdict.is_met,
                )
            })
            .collect();
        let expected = [
            (1.5, false),
            (3.0, false),
            (30.0, true),
            (9.0, true),
            (110.0, true),
            (1.5, true),
            (20.48, true),
            (1.1, true),
            (2.0, false),
            (110.0, true),
            (220.0, true),
            (1.5, false),
            (30.72, true),
        ];
        assert_eq!(found, expected.map(|(value, is_met)| (Some(value), is_met)));
    }

    #[test]
    fn the_99th_percentile_is_judged_where_everybody_has_a_core() {
        let judged = |processor: &str| {
            let mut results = Results::new(vec![("Processor".to_owned(), processor.to_owned())]);
            for measured in everything().sections {
                results.put(measured);
            }
            let p99 = |verdict: &Verdict| verdict.what.contains("half of saturation");
            verdicts(&results).iter().find(|verdict| p99(verdict)).cloned()
        };
        assert_eq!(
            judged("x, 4 cores").map(|verdict| verdict.found),
            Some(Some(220.0))
        );
        assert_eq!((judged("x, 3 cores"), judged("unknown")), (None, None));
    }

    #[test]
    fn unmeasured_targets_are_not_met() {
        let nothing = verdicts(&Results::new(Vec::new()));
        assert_eq!(nothing.len(), 13);
        assert!(
            nothing
                .iter()
                .all(|verdict| verdict.found.is_none() && !verdict.is_met)
        );
    }
}
