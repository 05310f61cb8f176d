//! Load on an edge (`tollgate-admin bench`): what an operator sends to a staging system to see what it takes, and whether
//! it charged exactly what it said.
//!
//! [`plan`] says what is sent when, [`crew`] on whose behalf, [`pace`] keeps the time, [`fire`] sends, [`record`] notes,
//! [`check`] compares what was charged with what was seen, [`tell`] reports. The load is open: a call is due when the plan
//! says so, whether the answers before it came or not, and its latency counts from then. So a server that stalls shows
//! all the calls that it kept waiting, not only the one that it happened to be busy with (no coordinated omission).

pub mod check;
pub mod crew;
mod fire;
pub mod kind;
mod pace;
pub mod plan;
mod progress;
mod record;
mod tell;

use crew::Crew;
use fire::Gun;
use plan::{Phase, Plan};
use record::Recorded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

pub use check::Verdict;
pub use tell::{intention, json, text};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// It was asked for something that cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// The state of things speaks against it.
    #[error("{0}")]
    Refused(String),
    /// The store does not do its part.
    #[error(transparent)]
    Store(#[from] store::StoreError),
}

/// What came of a phase.
#[derive(Debug)]
pub struct Measured {
    /// What was sent.
    pub phase: Phase,
    /// What came back.
    pub seen: Recorded,
}

/// What came of it all.
#[derive(Debug)]
pub struct Outcome {
    /// The phases that ran, the warm-up included.
    pub phases: Vec<Measured>,
    /// Whether somebody stopped it before its end.
    pub interrupted: bool,
    /// The highest rate of a ramp that was answered within the bounds.
    pub knee: Option<u32>,
    /// Why a ramp ended before its last step.
    pub stopped_by: Option<String>,
    /// What the ledger says, if it was asked.
    pub verdict: Verdict,
}

impl Outcome {
    /// The share of calls that ended otherwise than they should, of those that were measured.
    #[must_use]
    pub fn error_share(&self) -> f64 {
        self.share(Recorded::errors)
    }

    /// The share of calls that a limit denied, of those that were measured.
    #[must_use]
    pub fn limited_share(&self) -> f64 {
        self.share(Recorded::limited)
    }

    /// Whether everything stayed within the plan's bounds, and nothing is wrong with the money.
    #[must_use]
    pub fn is_good(&self, plan: &Plan) -> bool {
        self.verdict.is_good()
            && self.error_share() <= plan.max_errors
            && self.limited_share() <= plan.max_limited
    }

    fn share(&self, of: fn(&Recorded) -> u64) -> f64 {
        let measured = self.phases.iter().filter(|one| one.phase.measured);
        let (found, calls) = measured.fold((0, 0), |(found, calls), one| {
            (found + of(&one.seen), calls + one.seen.calls())
        });
        found as f64 / (calls.max(1)) as f64
    }
}

/// Runs the plan on behalf of the crew, and asks `store` afterwards, when there is one.
///
/// # Errors
/// [`BenchError`]; load that is answered badly is no error.
pub async fn run(
    plan: Plan,
    crew: &Crew,
    store: Option<&Store>,
    stop: &Arc<AtomicBool>,
    show: bool,
) -> Result<Outcome, BenchError> {
    let before = match store {
        Some(store) => Some(check::look(store, crew).await?),
        None => None,
    };
    let gun = Arc::new(Gun::new(&plan, crew)?);
    let mut phases = Vec::new();
    let (mut knee, mut stopped_by) = (None, None);
    for phase in plan.phases() {
        let shown = show.then(|| progress::start(&phase, &gun));
        let seen = fire::phase(&gun, &phase, stop).await?;
        if let Some(shown) = shown {
            shown.end();
        }
        let is_step = phase.is_step;
        let beyond = is_step.then(|| plan.beyond(&seen)).flatten();
        if is_step && beyond.is_none() && !stop.load(Ordering::Acquire) {
            knee = Some(phase.rate);
        }
        phases.push(Measured { phase, seen });
        stopped_by = beyond;
        if stopped_by.is_some() || stop.load(Ordering::Acquire) {
            break;
        }
    }
    let verdict = match (store, before) {
        // The figures of the run are told although the store is away by now.
        (Some(store), Some(before)) => check::verdict(store, crew, &before, &gun.ledger())
            .await
            .unwrap_or_else(|error| Verdict::NotChecked(error.to_string())),
        _ => Verdict::NotAsked,
    };
    Ok(Outcome {
        phases,
        interrupted: stop.load(Ordering::Acquire),
        knee,
        stopped_by,
        verdict,
    })
}
