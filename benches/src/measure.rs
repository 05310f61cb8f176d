//! Running the load generator against one contender, and keeping what it found.

use crate::contender::{Contender, Name, UPSTREAM};
use crate::ledger::Ledger;
use crate::machine::{REAL_TIME, prioritise};
use crate::progress::Progress;
use crate::row::Row;
use crate::stage::Stage;
use gate_bench_rig::outcome::Outcome;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Child, Command, Stdio};

/// Keep-alive connections of the closed loop.
pub(crate) const CONNECTIONS: usize = 64;
/// Requests that share a connection, where many do.
pub(crate) const STREAMS: usize = 8;

/// Protocol of the callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// HTTP/1.1 without TLS.
    Clear,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 over TLS, with this many requests sharing a connection.
    Http2(usize),
}

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Phase {
    /// Requests under way at once.
    pub(crate) connections: usize,
    /// Requests a second in an open loop; `None` is a closed one.
    pub(crate) rate: Option<f64>,
    /// Size of the request's body.
    pub(crate) body_bytes: usize,
    pub(crate) wire: Wire,
    /// Keeps streams open, with so many microseconds between two events.
    pub(crate) stream_every_us: Option<u64>,
    /// What counts.
    pub(crate) seconds: f64,
    /// Before it.
    pub(crate) warm_up: f64,
}

/// Runs loads.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    pub(crate) stage: &'a Stage,
    /// Whether an open loop and its provider get real-time priority, without which it would measure the scheduler.
    pub(crate) real_time: bool,
    pub(crate) progress: &'a Progress,
    /// Errors of the section so far.
    pub(crate) errors: RefCell<Vec<String>>,
}

impl Runner<'_> {
    /// One for other programs, with errors of its own.
    pub(crate) fn on<'a>(&'a self, stage: &'a Stage) -> Runner<'a> {
        Runner {
            stage,
            real_time: self.real_time,
            progress: self.progress,
            errors: RefCell::default(),
        }
    }

    /// One phase against one contender. Answers that are not as expected are kept as errors of the section.
    pub(crate) fn load(&self, contender: &Contender<'_>, phase: Phase) -> Result<Outcome, Box<dyn Error>> {
        self.finish(contender, phase, self.start(contender, phase)?)
    }

    /// Begins a phase, beside which something else can be measured.
    pub(crate) fn start(&self, contender: &Contender<'_>, phase: Phase) -> Result<Child, Box<dyn Error>> {
        let mut watched = contender.watched.iter();
        if self.real_time
            && let Some(provider) = watched.find(|watched| watched.name == UPSTREAM)
        {
            prioritise(provider.pid, self.is_real_time(phase))?;
        }
        let mut command = Command::new("taskset");
        command.args(self.words(contender, phase)).stdin(Stdio::null());
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?)
    }

    /// Whether the load and the provider come before the store, whose core they may share. In a closed loop, which
    /// keeps the core full, they would take it from the store.
    const fn is_real_time(&self, phase: Phase) -> bool {
        self.real_time && (phase.rate.is_some() || phase.stream_every_us.is_some())
    }

    /// Waits for a phase that was begun. Answers that are not as expected are kept as errors of the section.
    pub(crate) fn finish(
        &self,
        contender: &Contender<'_>,
        phase: Phase,
        load: Child,
    ) -> Result<Outcome, Box<dyn Error>> {
        let outcome = self.outcome(contender, phase, load)?;
        if outcome.errors > 0 || outcome.answered == 0 {
            let first = outcome.first_error.as_deref().unwrap_or("no answer at all");
            let line = format!(
                "{}: {} errors, the first: {first}",
                contender.name.shown(),
                outcome.errors
            );
            self.errors.borrow_mut().push(line);
        }
        Ok(outcome)
    }

    /// One phase whose errors are the caller's to judge.
    pub(crate) fn quietly(&self, contender: &Contender<'_>, phase: Phase) -> Result<Outcome, Box<dyn Error>> {
        self.outcome(contender, phase, self.start(contender, phase)?)
    }

    /// Records the outcome of a phase, and its approved calls where they must be charged.
    fn outcome(
        &self,
        contender: &Contender<'_>,
        phase: Phase,
        load: Child,
    ) -> Result<Outcome, Box<dyn Error>> {
        let output = load.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{:?}: {}", self.words(contender, phase), output.status).into());
        }
        let outcome: Outcome = serde_json::from_slice(&output.stdout)?;
        if let Some(ledger) = contender.ledger {
            ledger.approved.set(ledger.approved.get() + outcome.approved());
        }
        self.progress.phase(contender.name, phase, &outcome);
        Ok(outcome)
    }

    fn words(&self, contender: &Contender<'_>, phase: Phase) -> Vec<String> {
        let mut words = vec!["-c".to_owned(), self.stage.cores.load.to_string()];
        if self.is_real_time(phase) {
            words.push("chrt".to_owned());
            words.extend(REAL_TIME.map(str::to_owned));
        }
        words.push(self.stage.program("bench-load"));
        let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        add("keys", contender.keys.display().to_string());
        add("connections", phase.connections.to_string());
        add("seconds", phase.seconds.to_string());
        add("warm-up", phase.warm_up.to_string());
        add("body-bytes", phase.body_bytes.to_string());
        if let Some(rate) = phase.rate {
            add("rate", rate.to_string());
        }
        if let Some(every_us) = phase.stream_every_us {
            add("stream-every-us", every_us.to_string());
        }
        if phase.wire != Wire::Clear {
            add("tls-ca", self.stage.certificates.authority.display().to_string());
        }
        if let Wire::Http2(streams) = phase.wire {
            add("http2-streams", streams.to_string());
        }
        for target in &contender.targets {
            add("target", target.to_string());
        }
        for status in &contender.expect {
            add("expect", status.to_string());
        }
        for watched in &contender.watched {
            add("watch", format!("{}={}", watched.name, watched.pid));
        }
        words
    }

    /// `rounds` rounds over the contenders, one after the other in each, so that what changes on the machine meets all
    /// of them.
    pub(crate) fn rounds(
        &self,
        rounds: usize,
        contenders: &[Contender<'_>],
        phase: Phase,
    ) -> Result<Vec<Row>, Box<dyn Error>> {
        let mut found: BTreeMap<Name, Vec<Outcome>> = BTreeMap::new();
        for _ in 0..rounds {
            for contender in contenders {
                let outcome = self.load(contender, phase)?;
                found.entry(contender.name).or_default().push(outcome);
            }
        }
        let rows = contenders.iter();
        Ok(rows
            .filter_map(|contender| Row::from_outcomes(contender.name, found.get(&contender.name)?))
            .collect())
    }

    /// Checks the ledger of a section. What it finds is an error of the section; the calls it checked are returned.
    pub(crate) async fn check(&self, ledger: &Ledger, edge: &str) -> u64 {
        match ledger.check(edge).await {
            Ok(calls) => calls,
            Err(error) => {
                self.errors.borrow_mut().push(error.to_string());
                0
            }
        }
    }
}
