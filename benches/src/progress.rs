//! Progress on stderr: what was measured, the numbers, and the time that is left.

use crate::contender::Name;
use crate::phase::{Phase, Wire};
use gate_bench_rig::outcome::Outcome;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::time::{Duration, Instant};

/// Time that a run has taken and is planned to take.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    /// Seconds that the sections were planned to take: those done, the one under way, and those to come.
    done: Cell<f64>,
    current: Cell<f64>,
    to_come: Cell<f64>,
    section_started: Cell<Instant>,
    section: RefCell<String>,
}

/// Writes a line to stderr; a failure is ignored.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Formats seconds as minutes: `3:07`.
fn minutes(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds.max(0.0))
        .unwrap_or_default()
        .as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Estimates the remaining seconds from the planned ones, at the pace of the run: `done` planned seconds took `took`.
fn left(done: f64, took: f64, planned_left: f64) -> f64 {
    let pace = if done >= 1.0 { took / done } else { 1.0 };
    planned_left * pace.clamp(0.5, 5.0)
}

impl Progress {
    /// Begins a run that is planned to take `planned` seconds.
    pub(crate) fn new(planned: f64) -> Self {
        Self {
            started: Instant::now(),
            done: Cell::new(0.0),
            current: Cell::new(0.0),
            to_come: Cell::new(planned),
            section_started: Cell::new(Instant::now()),
            section: RefCell::default(),
        }
    }

    /// Begins a section that is planned to take `planned` seconds.
    pub(crate) fn section(&self, name: &str, planned: f64) {
        self.done.set(self.done.get() + self.current.get());
        self.to_come.set((self.to_come.get() - planned).max(0.0));
        self.current.set(planned);
        self.section_started.set(Instant::now());
        name.clone_into(&mut self.section.borrow_mut());
        say(&format!(
            "== {name}, about {}; {}",
            minutes(planned),
            self.clock()
        ));
    }

    fn clock(&self) -> String {
        let now = Instant::now();
        let in_section = (now - self.section_started.get()).as_secs_f64();
        let before = (self.section_started.get() - self.started).as_secs_f64();
        let planned = self.to_come.get() + (self.current.get() - in_section).max(0.0);
        let left = left(self.done.get(), before, planned);
        format!(
            "{} gone, about {} left",
            minutes(before + in_section),
            minutes(left)
        )
    }

    pub(crate) fn phase(&self, name: Name, phase: Phase, outcome: &Outcome) {
        let rate = outcome.answered as f64 / outcome.seconds;
        let load = match (phase.rate, phase.wire) {
            _ if phase.stream_every_us.is_some() => format!("streams over {}", phase.connections),
            (Some(rate), _) => format!("{rate:.0}/s over {}", phase.connections),
            (None, Wire::Clear) => format!("{} at once, {} B", phase.connections, phase.body_bytes),
            (None, Wire::Tls) => format!("{} at once, TLS", phase.connections),
            (None, Wire::Http2(_)) => format!("{} at once, HTTP/2", phase.connections),
        };
        say(&format!(
            "{:<11}{:<36}{load:<24}{rate:>8.0}/s  p50 {:>7.0}  p99 {:>7.0} µs  {} errors   [{}]",
            self.section.borrow(),
            name.shown(),
            outcome.latency.p50_us,
            outcome.latency.p99_us,
            outcome.errors,
            self.clock()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_printed_in_minutes_also_when_it_is_none() {
        assert_eq!(minutes(187.6), "3:07");
        assert_eq!(minutes(f64::NAN), "0:00");
        assert_eq!(minutes(-4.0), "0:00");
    }

    #[test]
    fn the_rest_is_estimated_at_the_pace_so_far() {
        assert_eq!(left(0.0, 0.0, 60.0), 60.0);
        assert_eq!(left(100.0, 120.0, 60.0), 72.0);
        assert_eq!(left(100.0, 10_000.0, 60.0), 300.0, "a pause is no pace");
        let progress = Progress::new(100.0);
        progress.section("one", 40.0);
        progress.section("two", 60.0);
        assert!(progress.clock().contains("left"), "{}", progress.clock());
    }
}
