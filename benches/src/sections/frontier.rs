//! The throughput frontier: the highest rates of an open loop at which the 99th percentile exceeds that of the provider
//! itself by at most 1, 5 and 10 ms, and no request fails. Found by bisection on a grid of rates.

use super::{Contenders, Outcome};
use crate::bisect;
use crate::contender::{Contender, Name};
use crate::fixture::Sides;
use crate::measure::Runner;
use crate::phase::{CONNECTIONS, Phase};
use crate::row::others_percent;
use crate::section::Lengths;
use gate_bench_rig::outcome::Outcome as Load;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;

/// Bounds on the latency that a proxy adds to the 99th percentile, in milliseconds. The loosest comes first: its rate
/// limits the search for the next.
const BOUNDS_MS: [f64; 3] = [10.0, 5.0, 1.0];
/// Failed tries after which a rate is bad: a single stall of the machine is not enough.
const TRIES: usize = 2;
/// Start of the search, as a fraction of the rate of the closed loop.
const FROM_SATURATION: f64 = 0.25;
/// End of the search, as a fraction of the rate of the closed loop.
const TO_SATURATION: f64 = 1.2;
/// Highest 99th percentile of the provider itself, in milliseconds. Above it a rate says nothing about a proxy.
const RIG_MS_MAX: f64 = 1.0;
/// Approximate number of probes of a search, for the estimate of the duration only.
const PROBES: f64 = 70.0;
/// The provider itself is measured at every fourth rate of the grid. A rate in between takes the result of the next
/// lower one.
const DIRECT_EVERY: usize = 4;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Frontier {
    /// One curve for each proxy.
    pub(crate) curves: Vec<Curve>,
}

/// Result of one proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    pub(crate) name: Name,
    /// Rate in a closed loop, in requests a second.
    pub(crate) saturation: f64,
    /// Percent of a core that other processes took during that loop.
    pub(crate) others_percent: f64,
    /// The highest good rate for each bound.
    pub(crate) highest: Vec<Highest>,
    /// Every rate that was tried, the lowest first.
    pub(crate) points: Vec<Point>,
}

/// The highest good rate for one bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Highest {
    /// Bound on the latency added to the 99th percentile of the provider, in milliseconds.
    pub(crate) bound_ms: f64,
    /// Requests a second; `None` when no rate was good.
    pub(crate) rate: Option<f64>,
    /// Whether the rig, not the proxy, limited the search; the proxy may reach more.
    pub(crate) is_of_rig: bool,
}

/// Best try at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The 99th percentile in milliseconds, from the moment at which a request was due.
    pub(crate) p99_ms: f64,
    /// The 99th percentile of the provider itself, in milliseconds.
    pub(crate) direct_ms: f64,
    /// Whether everything was sent and answered.
    pub(crate) is_whole: bool,
}

impl Point {
    fn is_good(&self, bound_ms: f64) -> bool {
        self.is_whole && self.is_within_rig() && self.added_ms() <= bound_ms
    }

    /// Whether the provider itself was fast enough for the point to say something about the proxy.
    pub(crate) fn is_within_rig(&self) -> bool {
        self.direct_ms <= RIG_MS_MAX
    }

    /// Latency that the proxy adds, in milliseconds.
    pub(crate) fn added_ms(&self) -> f64 {
        self.p99_ms - self.direct_ms
    }
}

/// Estimated duration, in seconds.
pub(crate) fn planned(lengths: &Lengths) -> f64 {
    let closed = Name::PROXIES.len() as f64 * lengths.phase();
    let probe = probe(lengths, 1.0);
    6.0 + closed + PROBES * (probe.seconds + probe.warm_up + 0.15)
}

fn probe(lengths: &Lengths, rate: f64) -> Phase {
    Phase {
        seconds: lengths.probe_seconds,
        warm_up: lengths.warm_up / 2.0,
        ..lengths.open(CONNECTIONS, rate)
    }
}

/// The search, with the results so far.
struct Search<'a> {
    runner: &'a Runner<'a>,
    lengths: &'a Lengths,
    direct: Contender<'a>,
    /// The 99th percentiles of the provider itself, by place on the grid.
    direct_ms: BTreeMap<usize, f64>,
}

impl Search<'_> {
    fn p99_ms(&self, contender: &Contender<'_>, place: usize) -> Result<(f64, bool), Box<dyn Error>> {
        let found: Load = self
            .runner
            .quietly(contender, probe(self.lengths, bisect::rate(place)))?;
        let is_whole = found.errors == 0 && found.unsent == 0 && found.answered > 0;
        Ok((found.latency.p99_us / 1000.0, is_whole))
    }

    /// Returns the 99th percentile of the provider itself at this rate, in milliseconds.
    fn direct_ms(&mut self, place: usize) -> Result<f64, Box<dyn Error>> {
        let place = place - place % DIRECT_EVERY;
        if let Some(found) = self.direct_ms.get(&place) {
            return Ok(*found);
        }
        let mut best = f64::INFINITY;
        for _ in 0..TRIES {
            let (p99_ms, is_whole) = self.p99_ms(&self.direct, place)?;
            if is_whole {
                best = best.min(p99_ms);
            }
            if best <= RIG_MS_MAX {
                break;
            }
        }
        // JSON has no infinity.
        let found = best.min(1e9);
        self.direct_ms.insert(place, found);
        Ok(found)
    }

    /// Tries a rate until it is good for this bound, [`TRIES`] times at most.
    fn try_rate(
        &mut self,
        contender: &Contender<'_>,
        points: &mut BTreeMap<usize, (usize, Point)>,
        place: usize,
        bound_ms: f64,
    ) -> Result<bool, Box<dyn Error>> {
        let direct_ms = self.direct_ms(place)?;
        loop {
            let known = points.get(&place).copied();
            if let Some((tries, point)) = known
                && (tries >= TRIES || point.is_good(bound_ms) || !point.is_within_rig())
            {
                return Ok(point.is_good(bound_ms));
            }
            let (p99_ms, is_whole) = self.p99_ms(contender, place)?;
            let point = Point {
                rate: bisect::rate(place),
                p99_ms,
                direct_ms,
                is_whole,
            };
            let (tries, best) = known.map_or((0, point), |(tries, before)| (tries, better(before, point)));
            points.insert(place, (tries + 1, best));
        }
    }

    fn curve(&mut self, contender: &Contender<'_>) -> Result<Curve, Box<dyn Error>> {
        let closed = self.runner.load(contender, self.lengths.closed())?;
        let saturation = closed.answered as f64 / closed.seconds;
        let (lowest, top) = (
            bisect::place(saturation * FROM_SATURATION),
            bisect::place(saturation * TO_SATURATION),
        );
        let mut high = top;
        let (mut points, mut highest) = (BTreeMap::new(), Vec::new());
        for bound_ms in BOUNDS_MS {
            let mut find = |low, high| {
                bisect::highest(low, high, |place| {
                    self.try_rate(contender, &mut points, place, bound_ms)
                })
            };
            let mut found = find(lowest, high)?;
            if found.is_none() {
                found = find(0, lowest.saturating_sub(1))?;
            }
            let next = found.map_or(0, |place| place + 1);
            // No rate beyond the top of the search was tried.
            let is_of_rig =
                found == Some(top) || points.get(&next).is_some_and(|(_, point)| !point.is_within_rig());
            highest.push(Highest {
                bound_ms,
                rate: found.map(bisect::rate),
                is_of_rig,
            });
            high = found.unwrap_or(0);
        }
        Ok(Curve {
            name: contender.name,
            saturation,
            highest,
            others_percent: others_percent(&closed),
            points: points.into_values().map(|(_, point)| point).collect(),
        })
    }
}

fn better(one: Point, other: Point) -> Point {
    let is_other = (other.is_whole, -other.p99_ms) > (one.is_whole, -one.p99_ms);
    if is_other { other } else { one }
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Frontier> {
    let servers = Contenders::start(runner.fixture, Sides::default()).await?;
    let mut search = Search {
        runner,
        lengths,
        direct: servers.direct(),
        direct_ms: BTreeMap::new(),
    };
    let mut frontier = Frontier::default();
    for contender in servers.contenders() {
        frontier.curves.push(search.curve(&contender)?);
    }
    let checked = runner.check(&servers.ledger, &servers.edge.url()).await;
    Ok((frontier, checked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_good_when_the_proxy_adds_little_and_the_rig_is_not_late() {
        let point = Point {
            rate: 100.0,
            p99_ms: 1.2,
            direct_ms: 0.3,
            is_whole: true,
        };
        assert!(point.is_good(1.0) && !point.is_good(0.8));
        let slow = Point { p99_ms: 3.0, ..point };
        let partial = Point {
            is_whole: false,
            ..point
        };
        let late = Point {
            direct_ms: 1.1,
            ..point
        };
        assert!(!slow.is_good(1.0) && slow.is_good(5.0));
        assert!(!partial.is_good(10.0) && !late.is_good(10.0));
        assert_eq!(better(slow, point), point);
        assert_eq!(better(point, slow), point);
        assert_eq!(
            better(partial, slow),
            slow,
            "a whole one is better than a fast one"
        );
    }
}
