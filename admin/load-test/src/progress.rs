//! Progress of a run: a line each second on standard error, which a terminal overwrites.

use super::generator::LoadGenerator;
use super::plan::millis;
use super::record::RecordedSamples;
use super::scenario::Phase;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Between two lines.
const EVERY: Duration = Duration::from_secs(1);
/// Clears the rest of a terminal's line.
const CLEAR: &str = "\x1b[K";

/// Displays a phase until it is ended.
pub(super) struct ProgressDisplay {
    task: JoinHandle<()>,
}

impl ProgressDisplay {
    pub(super) fn end(self) {
        self.task.abort();
        if stderr().is_terminal() {
            write(&format!("\r{CLEAR}"));
        }
    }
}

pub(super) fn start(phase: &Phase, generator: &Arc<LoadGenerator>) -> ProgressDisplay {
    let (name, rate, time, generator) = (phase.name.clone(), phase.rate, phase.time, Arc::clone(generator));
    let task = tokio::spawn(async move {
        let started = Instant::now();
        let mut ticks = tokio::time::interval(EVERY);
        ticks.tick().await;
        let mut before = 0;
        loop {
            ticks.tick().await;
            let (elapsed, whole) = (started.elapsed().as_secs(), time.as_secs_f64().ceil());
            let head = format!("{name} {elapsed}/{whole} s, {rate}/s due: ");
            let line = generator.peek(|seen| (line(seen, before), seen.answered()));
            if let Some((line, answered)) = line {
                before = answered;
                match stderr().is_terminal() {
                    true => write(&format!("\r{head}{line}{CLEAR}")),
                    false => write(&format!("{head}{line}\n")),
                }
            }
        }
    });
    ProgressDisplay { task }
}

fn line(seen: &RecordedSamples, before: u64) -> String {
    let (p50, p99) = (millis(seen.quantile(0.5)), millis(seen.quantile(0.99)));
    let (last, limited, errors) = (seen.answered() - before, seen.limited(), seen.errors());
    format!("{last}/s answered, p50 {p50} ms, p99 {p99} ms, {limited} limited, {errors} errors")
}

/// A closed standard error is ignored.
fn write(text: &str) {
    let mut out = stderr().lock();
    let _unwritable = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
