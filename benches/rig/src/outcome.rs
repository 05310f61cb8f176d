//! Outcome of a phase of load: the output of `bench-load` and the input of `gate-bench`.

use crate::cpu;
use crate::stream_wire::STREAM_EVENTS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// The name under which the busy time of the whole machine is reported.
pub const MACHINE: &str = "machine";
/// The name of the load generator itself.
pub const LOAD: &str = "load";

/// Outcome of one phase of load. Values are those of the window, without the warm-up, unless a field says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Expected answers within the window; for streams, the events within the window divided by those of a stream.
    pub answered: u64,
    /// Expected answers from the first request on.
    pub answered_in_all: u64,
    /// All other results: other statuses, broken connections.
    pub errors: u64,
    /// The first error.
    pub first_error: Option<String>,
    /// Expected answers by status, from the first request on.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests of an open loop that were due while no connection was free, and were never sent; their latencies count.
    /// For streams, those left out because the two before them had not ended.
    pub unsent: u64,
    /// Length of the window.
    pub seconds: f64,
    /// From the sending, in an open loop from the due time, to the last byte of the answer; for a stream to its first
    /// event.
    pub latency: Quantiles,
    /// From the due time to the real sending; zero in a closed loop. A large value means that the generator, not the
    /// target, was late.
    pub lateness: Quantiles,
    /// Seconds of CPU within the window, by process.
    pub cpu_seconds: BTreeMap<String, f64>,
}

impl Outcome {
    /// Calls that were answered with 200, the warm-up included.
    #[must_use]
    pub fn approved(&self) -> u64 {
        self.statuses.get(&200).copied().unwrap_or_default()
    }
}

/// Quantiles in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of the values are at most this.
    pub p50_us: f64,
    /// 90 of 100 are at most this.
    pub p90_us: f64,
    /// 99 of 100 are at most this.
    pub p99_us: f64,
    /// 999 of 1000 are at most this.
    pub p999_us: f64,
    /// Largest value.
    pub max_us: f64,
}

impl Quantiles {
    /// Computes the exact quantiles: the value at rank ⌈q·n⌉. Sorts the values.
    #[must_use]
    pub fn from_samples(values: &mut [Duration]) -> Self {
        values.sort_unstable();
        let at = |permille: usize| {
            let rank = (values.len() * permille).div_ceil(1000).max(1);
            values
                .get(rank - 1)
                .map_or(0.0, |value| value.as_secs_f64() * 1e6)
        };
        Self {
            p50_us: at(500),
            p90_us: at(900),
            p99_us: at(990),
            p999_us: at(999),
            max_us: at(1000),
        }
    }
}

/// Returns the median; of an even count the mean of the two middle values. `None` without values.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(*values.get(low)?, *values.get(high)?))
}

/// The measured time.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Its begin.
    pub begin: Instant,
    /// Its end; no request is sent later.
    pub end: Instant,
}

impl Window {
    /// A window of `length` that starts after `warm_up`.
    #[must_use]
    pub fn after(warm_up: Duration, length: Duration) -> Self {
        let begin = Instant::now() + warm_up;
        Self {
            begin,
            end: begin + length,
        }
    }

    /// Whether a moment lies in the window.
    #[must_use]
    pub fn holds(&self, at: Instant) -> bool {
        self.begin <= at && at < self.end
    }

    /// Waits until the window ends. Returns the CPU time within it of the watched processes, of this process and of the
    /// machine, in seconds.
    ///
    /// # Errors
    /// When a watched process has ended.
    pub(crate) async fn cpu_seconds(&self, watched: &[WatchedProcess]) -> io::Result<BTreeMap<String, f64>> {
        tokio::time::sleep_until(self.begin.into()).await;
        let before = cpu_now(watched)?;
        tokio::time::sleep_until(self.end.into()).await;
        Ok(cpu_between(&before, cpu_now(watched)?))
    }
}

/// A process whose CPU time is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Its name in the report.
    pub name: String,
    /// Its process id.
    pub pid: u32,
}

impl std::str::FromStr for WatchedProcess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, pid) = text.split_once('=').ok_or("not NAME=PID")?;
        let pid = pid.parse().map_err(|_| format!("{pid} is no process id"))?;
        Ok(Self {
            name: name.to_owned(),
            pid,
        })
    }
}

/// CPU time so far, in seconds.
fn cpu_now(watched: &[WatchedProcess]) -> io::Result<BTreeMap<String, f64>> {
    let mut seconds = BTreeMap::from([
        (MACHINE.to_owned(), cpu::of_machine()?),
        (LOAD.to_owned(), cpu::of_process(std::process::id())?),
    ]);
    for WatchedProcess { name, pid } in watched {
        *seconds.entry(name.clone()).or_default() += cpu::of_process(*pid)?;
    }
    Ok(seconds)
}

/// CPU time between two readings, in seconds.
fn cpu_between(before: &BTreeMap<String, f64>, after: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let since = |(name, seconds): (String, f64)| {
        let earlier = before.get(&name).copied().unwrap_or_default();
        (name, seconds - earlier)
    };
    after.into_iter().map(since).collect()
}

/// Samples of one connection, or of all together.
#[derive(Debug, Default)]
pub struct Samples {
    /// Latencies within the window.
    pub latencies: Vec<Duration>,
    /// Delay of the requests of the window behind their schedule.
    pub lateness: Vec<Duration>,
    /// Expected answers by status, the warm-up included.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that were due in the window and never sent.
    pub unsent: u64,
    /// Errors; a connection ends with its first one.
    pub errors: Vec<String>,
    /// Events of streams within the window.
    pub events: u64,
}

impl Samples {
    /// Adds the samples of another connection.
    pub fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.lateness.extend(other.lateness);
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.unsent += other.unsent;
        self.errors.extend(other.errors);
        self.events += other.events;
    }

    /// Counts an answer with this status.
    ///
    /// # Errors
    /// When the status is not expected; the message names both.
    pub fn count(&mut self, status: u16, expected: &[u16]) -> io::Result<()> {
        if !expected.contains(&status) {
            return Err(io::Error::other(format!(
                "status {status} instead of {expected:?}"
            )));
        }
        *self.statuses.entry(status).or_default() += 1;
        Ok(())
    }

    /// Computes the outcome.
    #[must_use]
    pub fn outcome(mut self, window: &Window, cpu_seconds: BTreeMap<String, f64>) -> Outcome {
        Outcome {
            // Most streams of a window began before it or end after it, so their events are counted.
            answered: match self.events / STREAM_EVENTS {
                0 => (self.latencies.len() as u64).saturating_sub(self.unsent),
                streams => streams,
            },
            answered_in_all: self.statuses.values().sum(),
            errors: self.errors.len() as u64,
            first_error: self.errors.into_iter().next(),
            statuses: self.statuses,
            unsent: self.unsent,
            seconds: (window.end - window.begin).as_secs_f64(),
            latency: Quantiles::from_samples(&mut self.latencies),
            lateness: Quantiles::from_samples(&mut self.lateness),
            cpu_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_at_their_rank() {
        let mut values: Vec<Duration> = (1..=200).rev().map(Duration::from_micros).collect();
        let found = Quantiles::from_samples(&mut values);
        let rounded = [
            found.p50_us,
            found.p90_us,
            found.p99_us,
            found.p999_us,
            found.max_us,
        ];
        assert_eq!(rounded.map(f64::round), [100.0, 180.0, 198.0, 200.0, 200.0]);
        assert_eq!(Quantiles::from_samples(&mut []), Quantiles::default());
        let one = Quantiles::from_samples(&mut [Duration::from_micros(7)]);
        assert_eq!([one.p50_us, one.p99_us].map(f64::round), [7.0, 7.0]);
    }

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0]), Some(2.5));
        assert_eq!(median([]), None);
    }

    #[test]
    fn only_the_window_counts_and_processes_of_one_name_are_summed() {
        let window = Window::after(Duration::from_secs(1), Duration::from_secs(2));
        assert!(!window.holds(Instant::now()) && window.holds(window.begin) && !window.holds(window.end));
        let me = WatchedProcess {
            name: "twice".to_owned(),
            pid: std::process::id(),
        };
        let twice = cpu_now(&[me.clone(), me]).unwrap();
        assert!(twice["twice"] >= twice[LOAD]);
        let before = BTreeMap::from([("a".to_owned(), 1.5)]);
        let after = BTreeMap::from([("a".to_owned(), 4.0)]);
        assert_eq!(cpu_between(&before, after)["a"], 2.5);
    }

    #[test]
    fn watched_processes_are_read() {
        let edge = WatchedProcess {
            name: "edge".to_owned(),
            pid: 12,
        };
        assert_eq!("edge=12".parse(), Ok(edge));
        assert!("edge".parse::<WatchedProcess>().is_err() && "edge=x".parse::<WatchedProcess>().is_err());
    }
}
