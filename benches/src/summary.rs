//! From the outcomes of several rounds to one number each: the median.

use crate::contender::{EDGE, Name, STORE, UPSTREAM};
use crate::measure::Rounds;
use gate_bench_rig::outcome::{LOAD, MACHINE, Outcome};

/// Edge CPU of Tollgate over that of the bare pass-through, at most.
const OVER_PASS_THROUGH_MAX: f64 = 1.6;
/// Edge CPU of Tollgate over that of nginx, at most.
const OVER_NGINX_MAX: f64 = 3.3;
/// CPU-microseconds of Redis an approved call, at most.
const STORE_US_MAX: f64 = 40.0;
/// Beyond this, whatever else ran on the machine has its part in the numbers.
const OTHERS_PERCENT_MAX: f64 = 10.0;

/// A contender under full load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Busy {
    /// Requests a second.
    pub(crate) rate: f64,
    /// CPU-microseconds of the measured proxy a request.
    pub(crate) edge_us: Option<f64>,
    /// CPU-microseconds of Redis a request.
    pub(crate) store_us: Option<f64>,
    /// Percent of a core that the proxy took.
    pub(crate) edge_percent: Option<f64>,
    /// Percent of a core that Redis, the provider and the load generator took together.
    pub(crate) rig_percent: f64,
    /// Percent of a core that everything else on the machine took, interrupts included.
    pub(crate) others_percent: f64,
}

/// A contender at a fixed rate, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Paced {
    /// Half of the calls took at most this.
    pub(crate) p50: f64,
    /// 99 of 100 calls took at most this.
    pub(crate) p99: f64,
    /// How late the generator itself was, 99th percentile.
    pub(crate) late_p99: f64,
}

/// One line of the floor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Check {
    /// What is compared.
    pub(crate) what: &'static str,
    /// What was found; `None` when it was not measured.
    pub(crate) found: Option<f64>,
    /// The largest value that is good.
    pub(crate) limit: f64,
}

impl Check {
    /// Whether the floor is met.
    pub(crate) fn is_met(&self) -> bool {
        self.found.is_some_and(|found| found <= self.limit)
    }
}

/// The middle value; the mean of the two middle ones of an even number. `None` of nothing.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(*values.get(low)?, *values.get(high)?))
}

fn cpu(outcome: &Outcome, names: &[&str]) -> f64 {
    names
        .iter()
        .filter_map(|name| outcome.cpu_seconds.get(*name))
        .sum()
}

/// A contender of the closed loop.
pub(crate) fn busy(rounds: &Rounds, name: Name) -> Option<Busy> {
    let outcomes = rounds.get(&name)?;
    let of = |value: &dyn Fn(&Outcome) -> f64| median(outcomes.iter().map(value)).unwrap_or_default();
    let has = |process: &str| {
        outcomes
            .iter()
            .all(|outcome| outcome.cpu_seconds.contains_key(process))
    };
    let per_request = |process: &'static str| {
        let each = |outcome: &Outcome| cpu(outcome, &[process]) * 1e6 / outcome.answered as f64;
        has(process).then(|| of(&each))
    };
    let percent =
        |names: &'static [&'static str]| of(&|outcome| cpu(outcome, names) * 100.0 / outcome.seconds);
    let everything = [EDGE, STORE, UPSTREAM, LOAD];
    let others = |outcome: &Outcome| {
        (cpu(outcome, &[MACHINE]) - cpu(outcome, &everything)).max(0.0) * 100.0 / outcome.seconds
    };
    Some(Busy {
        rate: of(&|outcome| outcome.answered as f64 / outcome.seconds),
        edge_us: per_request(EDGE),
        store_us: per_request(STORE),
        edge_percent: has(EDGE).then(|| percent(&[EDGE])),
        rig_percent: percent(&[STORE, UPSTREAM, LOAD]),
        others_percent: of(&others),
    })
}

/// A contender of an open loop.
pub(crate) fn paced(rounds: &Rounds, name: Name) -> Option<Paced> {
    let outcomes = rounds.get(&name)?;
    let of = |value: &dyn Fn(&Outcome) -> f64| median(outcomes.iter().map(value));
    Some(Paced {
        p50: of(&|outcome| outcome.latency.p50_us)?,
        p99: of(&|outcome| outcome.latency.p99_us)?,
        late_p99: of(&|outcome| outcome.lateness.p99_us)?,
    })
}

/// Percent of a core that others took while a contender of the floor was measured, when that is too much.
pub(crate) fn disturbance(closed: &Rounds) -> Option<f64> {
    let names = [Name::Nginx, Name::PassThrough, Name::Tollgate];
    let others = names.iter().filter_map(|name| busy(closed, *name));
    let most = others.map(|busy| busy.others_percent).max_by(f64::total_cmp);
    most.filter(|percent| *percent > OTHERS_PERCENT_MAX)
}

/// The floor that the edge must keep to.
pub(crate) fn floor(closed: &Rounds) -> [Check; 3] {
    let edge = |name| busy(closed, name).and_then(|busy| busy.edge_us);
    let over = |name| Some(edge(Name::Tollgate)? / edge(name)?);
    let store = busy(closed, Name::Tollgate).and_then(|busy| busy.store_us);
    [
        ("edge CPU, c/b", over(Name::PassThrough), OVER_PASS_THROUGH_MAX),
        ("edge CPU, c/a", over(Name::Nginx), OVER_NGINX_MAX),
        ("store CPU-µs a call", store, STORE_US_MAX),
    ]
    .map(|(what, found, limit)| Check { what, found, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gate_bench_rig::outcome::Quantiles;

    fn outcome(answered: u64, cpu: &[(&str, f64)]) -> Outcome {
        let quantiles = Quantiles {
            p50_us: answered as f64,
            p99_us: 2.0,
            max_us: 3.0,
        };
        Outcome {
            answered,
            answered_in_all: answered,
            errors: 0,
            first_error: None,
            seconds: 2.0,
            latency: quantiles,
            lateness: quantiles,
            cpu_seconds: cpu
                .iter()
                .map(|(name, seconds)| ((*name).to_owned(), *seconds))
                .collect(),
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
    }

    #[test]
    fn cpu_time_is_told_a_request_and_a_second() {
        let cpu = [
            (EDGE, 1.0),
            (STORE, 0.5),
            (UPSTREAM, 0.2),
            (LOAD, 0.3),
            (MACHINE, 2.5),
        ];
        let rounds = Rounds::from([(Name::Tollgate, vec![outcome(10_000, &cpu)])]);
        let found = busy(&rounds, Name::Tollgate).unwrap();
        assert_eq!(
            (found.rate, found.edge_us, found.store_us),
            (5_000.0, Some(100.0), Some(50.0))
        );
        assert_eq!(
            (found.edge_percent, found.rig_percent, found.others_percent),
            (Some(50.0), 50.0, 25.0)
        );
        assert_eq!(busy(&rounds, Name::Nginx), None);
        assert_eq!(disturbance(&rounds), Some(25.0));
        assert_eq!(disturbance(&Rounds::new()), None);
        let direct = Rounds::from([(Name::Direct, vec![outcome(10, &[(LOAD, 1.0)])])]);
        let found = busy(&direct, Name::Direct).unwrap();
        assert_eq!((found.edge_us, found.edge_percent), (None, None));
        assert_eq!(paced(&direct, Name::Direct).unwrap().p50, 10.0);
    }

    #[test]
    fn the_floor_is_met_up_to_its_limits_and_not_beyond() {
        let rounds = |tollgate: f64, store: f64| {
            Rounds::from([
                (Name::Nginx, vec![outcome(1_000_000, &[(EDGE, 16.0)])]),
                (Name::PassThrough, vec![outcome(1_000_000, &[(EDGE, 32.0)])]),
                (
                    Name::Tollgate,
                    vec![outcome(1_000_000, &[(EDGE, tollgate), (STORE, store)])],
                ),
            ])
        };
        let met = |tollgate, store| floor(&rounds(tollgate, store)).map(|check| check.is_met());
        assert_eq!(met(51.2, 40.0), [true, true, true]);
        assert_eq!(met(51.3, 40.1), [false, true, false]);
        assert_eq!(met(52.9, 1.0), [false, false, true]);
        assert!(floor(&Rounds::new()).iter().all(|check| !check.is_met()));
    }
}
