//! Instructions of a call and of a stream, counted by callgrind. A busy machine hardly changes them: the instructions
//! of the proxy without calls, such as its check of the store each second, are counted first and subtracted. Otherwise
//! a call would have more of them, the slower the machine. Instructions of the kernel are not counted. The proxy is
//! counted as it is built, except that it hashes in software: valgrind does not know the instructions for hashes.

use super::Outcome;
use crate::contender::{Contender, Name};
use crate::fixture::{Fixture, Sides, plain, tollgate};
use crate::measure::Runner;
use crate::phase::Phase;
use crate::section::Lengths;
use gate_bench::output::output;
use harness::executable_script;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections of the load: enough that the proxy always has a request to serve.
const CONNECTIONS: usize = 16;
/// Makes the C library copy without `rep movsb`, which callgrind counts once for each byte.
const COPIES: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000";
/// Programs that run under callgrind.
const COUNTED: [&str; 2] = ["tollgate-proxy", "bench-pass-through"];
/// Programs that run without callgrind.
const OTHERS: [&str; 2] = ["bench-upstream", "bench-load"];
/// Seconds of calls, once to warm up and once counted.
const SECONDS: f64 = 4.0;
/// Seconds of streams; one stream takes two.
const STREAM_SECONDS: f64 = 6.0;
/// Open streams, and the microseconds between two events of a stream. Few enough for the proxy to keep up under
/// callgrind. Otherwise it reads several events at once, and more of them the slower it is.
const STREAM_CONNECTIONS: usize = 8;
const STREAM_EVERY_US: u64 = 10_000;
/// Seconds without calls, for what is subtracted.
const IDLE_SECONDS: f64 = 5.0;
/// Seconds that a start under callgrind takes.
const START_SECONDS: f64 = 10.0;

/// Count for one proxy and one kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallInstructions {
    pub(crate) name: Name,
    /// Whether the answers were streams of 200 events.
    pub(crate) streamed: bool,
    /// Calls that were answered during the count; for streams, a 200th of their events.
    pub(crate) calls: u64,
    /// Instructions during the count, without those that the proxy takes in the same time without calls.
    pub(crate) instructions: u64,
}

impl CallInstructions {
    pub(crate) const fn of_one(&self) -> u64 {
        match self.calls {
            0 => 0,
            calls => self.instructions / calls,
        }
    }
}

/// Estimated duration, in seconds.
pub(crate) fn planned() -> f64 {
    COUNTED.len() as f64 * (START_SECONDS + 2.0 * SECONDS + IDLE_SECONDS + STREAM_SECONDS)
}

pub(crate) async fn run(runner: &Runner<'_>, lengths: &Lengths) -> Outcome<Vec<CallInstructions>> {
    let programs = programs(runner.fixture)?;
    let fixture = Fixture::new(&programs, runner.fixture.cores)?;
    let counting = runner.on(&fixture);
    let sides = Sides::default();
    let provider = fixture.provider(sides)?;
    let ledger = fixture.ledger(true).await?;
    let mut found = Vec::new();
    {
        let pass_through = fixture.pass_through(&provider, sides)?;
        let contender = plain(Name::PassThrough, Some(&pass_through), &provider, &ledger);
        found.extend(count_both(&counting, lengths, &contender, pass_through.pid())?);
    }
    let edge = fixture.edge(fixture.edge_setup(), &ledger, &provider, sides)?;
    let contender = tollgate(Name::Tollgate, &[&edge], &ledger, &provider);
    found.extend(count_both(&counting, lengths, &contender, edge.pid())?);
    let checked = counting.check(&ledger, &edge.url()).await;
    runner.errors.borrow_mut().append(&mut counting.errors.take());
    Ok((found, checked))
}

/// Creates a folder with all programs; those of [`COUNTED`] start under callgrind.
fn programs(fixture: &Fixture) -> Result<PathBuf, Box<dyn Error>> {
    output("valgrind", &["--version"])?;
    let dir = fixture.dir().join("counted");
    std::fs::create_dir_all(&dir)?;
    for name in OTHERS {
        symlink(fixture.program(name), dir.join(name))?;
    }
    for name in COUNTED {
        let script = format!(
            "#!/bin/sh\nGLIBC_TUNABLES='{COPIES}' exec valgrind --quiet --tool=callgrind --callgrind-out-file='{}' '{}' \"$@\"\n",
            dir.join("counted.%p").display(),
            fixture.program(name)
        );
        executable_script(&dir.join(name), &script);
    }
    Ok(dir)
}

/// Counts the calls and the streams of one proxy.
fn count_both(
    runner: &Runner<'_>,
    lengths: &Lengths,
    contender: &Contender<'_>,
    pid: u32,
) -> Result<[CallInstructions; 2], Box<dyn Error>> {
    let phase = Phase {
        connections: CONNECTIONS,
        seconds: SECONDS,
        warm_up: 0.0,
        ..lengths.closed()
    };
    let streams = Phase {
        connections: STREAM_CONNECTIONS,
        stream_every_us: Some(STREAM_EVERY_US),
        seconds: STREAM_SECONDS,
        ..phase
    };
    runner.load(contender, phase)?;
    let wait = || {
        std::thread::sleep(Duration::from_secs_f64(IDLE_SECONDS));
        Ok(())
    };
    let ((), idle) = count(runner, (pid, 1), wait)?;
    let found = |dump: u32, phase: Phase| {
        let (load, all) = count(runner, (pid, dump), || runner.load(contender, phase))?;
        Ok::<_, Box<dyn Error>>(CallInstructions {
            name: contender.name,
            streamed: phase.stream_every_us.is_some(),
            calls: load.answered,
            instructions: all.saturating_sub(in_time(idle, phase.seconds)),
        })
    };
    Ok([found(2, phase)?, found(3, streams)?])
}

/// Returns the share of `seconds` in the `idle` instructions of [`IDLE_SECONDS`].
fn in_time(idle: u64, seconds: f64) -> u64 {
    (idle as f64 * seconds / IDLE_SECONDS) as u64
}

/// Counts the instructions of a warm proxy while `work` runs, as its dump number `dump`.
fn count<T>(
    runner: &Runner<'_>,
    (pid, dump): (u32, u32),
    work: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<(T, u64), Box<dyn Error>> {
    let pid = pid.to_string();
    output("callgrind_control", &["--zero", &pid])?;
    let done = work()?;
    output("callgrind_control", &["--dump", &pid])?;
    let dump = runner.fixture.program(&format!("counted.{pid}.{dump}"));
    let all = total(&std::fs::read_to_string(Path::new(&dump))?).ok_or(format!("{dump}: no total"))?;
    Ok((done, all))
}

/// Returns the total at the end of a dump of callgrind.
fn total(dump: &str) -> Option<u64> {
    let mut lines = dump.lines().rev();
    lines
        .find_map(|line| line.strip_prefix("totals: "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_dump_is_read() {
        let dump = "events: Ir\nsummary: 12\n\nfn=(1)\n3 4\n\ntotals: 1234\n";
        assert_eq!(
            (total(dump), total("totals: many"), total("")),
            (Some(1234), None, None)
        );
    }

    #[test]
    fn a_longer_count_contains_more_of_what_is_done_without_calls() {
        assert_eq!(
            [IDLE_SECONDS, 2.0, 0.0].map(|seconds| in_time(1000, seconds)),
            [1000, 400, 0]
        );
    }

    #[test]
    fn a_call_is_a_share_of_all() {
        let mut counted = CallInstructions {
            name: Name::Tollgate,
            streamed: false,
            calls: 3,
            instructions: 10,
        };
        assert_eq!(counted.of_one(), 3);
        counted.calls = 0;
        assert_eq!(counted.of_one(), 0);
    }
}
