//! Rows of the tables: medians over the outcomes of several rounds.

use crate::contender::{EDGE, Name, STORE, UPSTREAM};
use gate_bench_rig::outcome::{LOAD, MACHINE, Outcome, Quantiles, median};
use serde::{Deserialize, Serialize};

/// Above this share, other processes on the machine distort the numbers.
pub(crate) const OTHERS_PERCENT_MAX: f64 = 10.0;

/// A contender under one load: medians over the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: Name,
    /// Rounds that were measured.
    pub(crate) rounds: usize,
    /// Requests a second.
    pub(crate) rate: f64,
    /// CPU-microseconds of the measured proxy a request.
    pub(crate) edge_us: Option<f64>,
    /// The smallest and the largest of the rounds.
    pub(crate) edge_us_range: Option<(f64, f64)>,
    /// CPU-microseconds of Redis a request.
    pub(crate) store_us: Option<f64>,
    /// Percent of a core that the proxy took.
    pub(crate) edge_percent: Option<f64>,
    /// Percent of a core that Redis, the provider and the load generator took together.
    pub(crate) rig_percent: f64,
    /// Percent of a core that everything else on the machine took, interrupts included.
    pub(crate) others_percent: f64,
    /// From the moment at which a request was due, or sent in a closed loop, to the end of its answer.
    pub(crate) latency: Quantiles,
    /// Delay of the generator: from the due to the real sending.
    pub(crate) lateness: Quantiles,
}

fn cpu(outcome: &Outcome, names: &[&str]) -> f64 {
    let seconds = names.iter().filter_map(|name| outcome.cpu_seconds.get(*name));
    // An empty sum would be -0.
    seconds.fold(0.0, |sum, seconds| sum + seconds)
}

/// Returns the CPU time of a process per request, in microseconds. `None` if it was not watched or nothing was
/// answered.
fn per_request(outcome: &Outcome, process: &str) -> Option<f64> {
    let seconds = outcome.cpu_seconds.get(process)?;
    (outcome.answered > 0).then(|| seconds * 1e6 / outcome.answered as f64)
}

/// Percent of a core that processes outside the bench took.
pub(crate) fn others_percent(outcome: &Outcome) -> f64 {
    let ours = cpu(outcome, &[EDGE, STORE, UPSTREAM, LOAD]);
    (cpu(outcome, &[MACHINE]) - ours).max(0.0) * 100.0 / outcome.seconds
}

fn quantiles(outcomes: &[Outcome], of: impl Fn(&Outcome) -> Quantiles) -> Quantiles {
    let middle = |pick: &dyn Fn(Quantiles) -> f64| {
        median(outcomes.iter().map(|outcome| pick(of(outcome)))).unwrap_or_default()
    };
    Quantiles {
        p50_us: middle(&|found| found.p50_us),
        p90_us: middle(&|found| found.p90_us),
        p99_us: middle(&|found| found.p99_us),
        p999_us: middle(&|found| found.p999_us),
        max_us: middle(&|found| found.max_us),
    }
}

impl Row {
    /// Computes the medians; `None` without rounds.
    pub(crate) fn from_outcomes(name: Name, outcomes: &[Outcome]) -> Option<Self> {
        let of = |value: &dyn Fn(&Outcome) -> f64| median(outcomes.iter().map(value));
        let has_edge = outcomes
            .iter()
            .all(|outcome| outcome.cpu_seconds.contains_key(EDGE));
        let a_request = |process: &str| {
            median(
                outcomes
                    .iter()
                    .filter_map(|outcome| per_request(outcome, process)),
            )
        };
        let percent = |names: &[&str]| of(&|outcome| cpu(outcome, names) * 100.0 / outcome.seconds);
        let edges = outcomes.iter().filter_map(|outcome| per_request(outcome, EDGE));
        let range = edges.fold(None, |range: Option<(f64, f64)>, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        Some(Self {
            name,
            rounds: outcomes.len(),
            rate: of(&|outcome| outcome.answered as f64 / outcome.seconds)?,
            edge_us: a_request(EDGE),
            edge_us_range: range,
            store_us: a_request(STORE),
            edge_percent: percent(&[EDGE]).filter(|_| has_edge),
            rig_percent: percent(&[STORE, UPSTREAM, LOAD])?,
            others_percent: of(&others_percent)?,
            latency: quantiles(outcomes, |outcome| outcome.latency),
            lateness: quantiles(outcomes, |outcome| outcome.lateness),
        })
    }
}

pub(crate) fn row(rows: &[Row], name: Name) -> Option<&Row> {
    rows.iter().find(|row| row.name == name)
}

/// Returns the ratio of the edge CPU time of `name` to that of `other`.
pub(crate) fn over(rows: &[Row], name: Name, other: Name) -> Option<f64> {
    let edge = |name| row(rows, name)?.edge_us.filter(|us| *us > 0.0);
    Some(edge(name)? / edge(other)?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An outcome of two seconds with these CPU times, whose 50th percentile is `p50` microseconds.
    pub(crate) fn outcome(answered: u64, p50: f64, cpu: &[(&str, f64)]) -> Outcome {
        let latency = Quantiles {
            p50_us: p50,
            p90_us: p50 * 1.5,
            p99_us: p50 * 2.0,
            p999_us: p50 * 3.0,
            max_us: p50 * 4.0,
        };
        Outcome {
            answered,
            answered_in_all: answered,
            errors: 0,
            first_error: None,
            statuses: [(200, answered)].into(),
            unsent: 0,
            seconds: 2.0,
            latency,
            lateness: Quantiles::default(),
            cpu_seconds: cpu
                .iter()
                .map(|(name, seconds)| ((*name).to_owned(), *seconds))
                .collect(),
        }
    }

    #[test]
    fn cpu_time_is_reported_a_request_and_a_second() {
        let cpu = [
            (EDGE, 1.0),
            (STORE, 0.5),
            (UPSTREAM, 0.2),
            (LOAD, 0.3),
            (MACHINE, 2.5),
        ];
        let other = [(EDGE, 1.2), (STORE, 0.5), (LOAD, 0.3), (MACHINE, 2.5)];
        let outcomes = [
            outcome(10_000, 10.0, &cpu),
            outcome(10_000, 30.0, &other),
            outcome(10_000, 20.0, &cpu),
        ];
        let found = Row::from_outcomes(Name::Tollgate, &outcomes).unwrap();
        assert_eq!(
            (found.rate, found.edge_us, found.store_us),
            (5_000.0, Some(100.0), Some(50.0))
        );
        assert_eq!(found.edge_us_range, Some((100.0, 120.0)));
        assert_eq!(
            (found.edge_percent, found.rig_percent, found.others_percent),
            (Some(50.0), 50.0, 25.0)
        );
        assert_eq!((found.latency.p50_us, found.latency.p999_us), (20.0, 60.0));
        assert_eq!(Row::from_outcomes(Name::Nginx, &[]), None);
    }

    #[test]
    fn a_contender_that_answered_nothing_has_no_cost_a_request() {
        let direct = Row::from_outcomes(Name::Direct, &[outcome(10, 1.0, &[(LOAD, 1.0)])]).unwrap();
        assert_eq!((direct.edge_us, direct.edge_percent), (None, None));
        let silent = Row::from_outcomes(Name::Nginx, &[outcome(0, 0.0, &[(EDGE, 1.0)])]).unwrap();
        assert_eq!(
            (silent.edge_us, silent.edge_us_range, silent.rate),
            (None, None, 0.0)
        );
        assert_eq!(over(&[direct, silent], Name::Nginx, Name::Direct), None);
    }
}
