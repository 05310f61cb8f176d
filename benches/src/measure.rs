//! Runs the load generator against one contender and records the outcome.

use crate::contender::{Contender, Name, UPSTREAM};
use crate::fixture::Fixture;
use crate::ledger::Ledger;
use crate::machine::{REAL_TIME, prioritise};
use crate::phase::{Phase, Wire};
use crate::progress::Progress;
use crate::row::Row;
use gate_bench_rig::outcome::Outcome;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Child, Command, Stdio};

/// Runs phases of load against contenders.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    pub(crate) fixture: &'a Fixture,
    /// Whether an open loop and its provider get real-time priority. Without it, the scheduler would be measured.
    pub(crate) real_time: bool,
    pub(crate) progress: &'a Progress,
    /// Errors of the section so far.
    pub(crate) errors: RefCell<Vec<String>>,
}

impl Runner<'_> {
    /// Returns a runner for another fixture, with a list of errors of its own.
    pub(crate) fn on<'a>(&'a self, fixture: &'a Fixture) -> Runner<'a> {
        Runner {
            fixture,
            real_time: self.real_time,
            progress: self.progress,
            errors: RefCell::default(),
        }
    }

    /// Runs one phase against one contender. Unexpected answers become errors of the section.
    pub(crate) fn load(&self, contender: &Contender<'_>, phase: Phase) -> Result<Outcome, Box<dyn Error>> {
        self.finish(contender, phase, self.start(contender, phase)?)
    }

    /// Starts a phase without waiting for its end, so that something else can be measured beside it.
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

    /// Whether load generator and provider take priority over the store, whose core they may share. Not in a closed
    /// loop: it keeps the core busy and would starve the store.
    const fn is_real_time(&self, phase: Phase) -> bool {
        self.real_time && (phase.rate.is_some() || phase.stream_every_us.is_some())
    }

    /// Waits for the end of a started phase. Unexpected answers become errors of the section.
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

    /// Runs one phase and leaves its errors to the caller.
    pub(crate) fn quietly(&self, contender: &Contender<'_>, phase: Phase) -> Result<Outcome, Box<dyn Error>> {
        self.outcome(contender, phase, self.start(contender, phase)?)
    }

    /// Waits for the end of a phase. Adds its approved calls to those that the contender's ledger must have charged.
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
        let mut words = vec!["-c".to_owned(), self.fixture.cores.load.to_string()];
        if self.is_real_time(phase) {
            words.push("chrt".to_owned());
            words.extend(REAL_TIME.map(str::to_owned));
        }
        words.push(self.fixture.program("bench-load"));
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
            add(
                "tls-ca",
                self.fixture.certificates.authority.display().to_string(),
            );
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

    /// Runs `rounds` rounds, each over all contenders in turn, so that a change of the machine affects all of them.
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

    /// Checks the ledger of a section. A discrepancy becomes an error of the section. Returns the number of checked
    /// calls.
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
