//! Load on an edge (`tollgate-admin bench`): what an operator sends to a staging system to see what it takes, and whether
//! it charged exactly what it said.
//!
//! [`plan`] says what is sent when, [`crew`] on whose behalf, [`pace`] keeps the time, [`fire`] sends, [`record`] notes,
//! [`check`] compares what was charged with what was seen, [`tell`] reports. The load is open: a call is due when the plan
//! says so, whether the answers before it came or not, and its latency counts from then. So a server that stalls shows
//! all the calls that it kept waiting, not only the one that it happened to be busy with (no coordinated omission).

pub mod check;
pub mod crew;
mod error;
mod fire;
pub mod kind;
mod outcome;
mod pace;
pub mod plan;
mod progress;
mod record;
mod tell;

use crew::Crew;
use fire::Gun;
use plan::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

pub use check::Verdict;
pub use error::BenchError;
pub use outcome::{Measured, Outcome};
pub use tell::{intention, json, text};

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
