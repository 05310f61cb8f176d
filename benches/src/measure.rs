//! Running the load generator against one contender, and keeping what it found.

use crate::contender::{Contender, Name};
use crate::machine::Cores;
use crate::stage::Stage;
use gate_bench_rig::outcome::Outcome;
use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Command, Stdio};

/// Keep-alive connections of the closed loop.
pub(crate) const CONNECTIONS: usize = 64;

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Phase {
    /// Keep-alive connections.
    pub(crate) connections: usize,
    /// Requests a second in an open loop; `None` is a closed one.
    pub(crate) rate: Option<f64>,
}

/// Length of every phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Times {
    /// What counts.
    pub(crate) seconds: f64,
    /// Before it.
    pub(crate) warm_up: f64,
}

/// What one kind of load found, by contender, one outcome a round.
pub(crate) type Rounds = BTreeMap<Name, Vec<Outcome>>;

/// How the load generator is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runner<'a> {
    /// What runs.
    pub(crate) stage: &'a Stage,
    /// Who runs where.
    pub(crate) cores: Cores,
    /// Whether an open loop gets real-time priority, without which it would measure the scheduler.
    pub(crate) real_time: bool,
    /// How long each phase is.
    pub(crate) times: Times,
}

impl Runner<'_> {
    /// One phase against one contender.
    pub(crate) fn load(&self, contender: &Contender, phase: Phase) -> Result<Outcome, Box<dyn Error>> {
        let mut words = vec!["-c".to_owned(), self.cores.load.to_string()];
        if self.real_time && phase.rate.is_some() {
            words.extend(["chrt", "-f", "10"].map(str::to_owned));
        }
        words.push(self.stage.bin_dir.join("bench-load").display().to_string());
        let options = [
            ("--target", contender.target.to_string()),
            ("--keys", contender.keys.display().to_string()),
            ("--connections", phase.connections.to_string()),
            ("--seconds", self.times.seconds.to_string()),
            ("--warm-up", self.times.warm_up.to_string()),
            ("--expect", contender.expect.to_string()),
        ];
        let watched = contender.watched.iter();
        let watched = watched.map(|watched| ("--watch", format!("{}={}", watched.name, watched.pid)));
        let rate = phase.rate.map(|rate| ("--rate", rate.to_string()));
        for (name, value) in options.into_iter().chain(watched).chain(rate) {
            words.extend([name.to_owned(), value]);
        }
        let mut command = Command::new("taskset");
        let output = command
            .args(&words)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(format!("taskset {words:?}: {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// `rounds` rounds over the contenders named, one after the other in each, so that what changes on the machine
    /// meets all of them.
    pub(crate) fn rounds(
        &self,
        rounds: usize,
        names: &[Name],
        phase: Phase,
        mut progress: impl FnMut(Name, &Outcome),
    ) -> Result<Rounds, Box<dyn Error>> {
        let mut found = Rounds::new();
        let contenders = self.stage.contenders();
        for _ in 0..rounds {
            for contender in contenders
                .iter()
                .filter(|contender| names.contains(&contender.name))
            {
                let outcome = self.load(contender, phase)?;
                progress(contender.name, &outcome);
                found.entry(contender.name).or_default().push(outcome);
            }
        }
        Ok(found)
    }
}

/// Answers of a contender in all rounds, warming up included.
pub(crate) fn answered_in_all(rounds: &Rounds, name: Name) -> u64 {
    rounds
        .get(&name)
        .into_iter()
        .flatten()
        .map(|outcome| outcome.answered_in_all)
        .sum()
}

/// Everything that went wrong, one line for each outcome with errors.
pub(crate) fn errors(rounds: &Rounds) -> Vec<String> {
    let outcomes = rounds
        .iter()
        .flat_map(|(name, outcomes)| outcomes.iter().map(move |outcome| (name, outcome)));
    let failed = outcomes.filter(|(_, outcome)| outcome.errors > 0 || outcome.answered == 0);
    let line = |(name, outcome): (&Name, &Outcome)| {
        let first = outcome.first_error.as_deref().unwrap_or("no answer at all");
        format!("{}: {} errors, the first: {first}", name.shown(), outcome.errors)
    };
    failed.map(line).collect()
}
