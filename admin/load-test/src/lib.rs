//! Load on an edge (`tollgate-admin bench`): shows an operator how much load a staging system can handle, and whether
//! the charges match the answers.
//!
//! [`plan`] determines what is sent when, by a [`scenario`] and a [`mix`] of calls; [`fixtures`] with which agents and
//! keys; `pace` releases calls in time, `generator` sends them, `record` counts them, [`check`] compares the charges
//! with the answers, and `report` formats the results. The load is open: a call is due according to the plan, whether
//! or not earlier answers have arrived, and its latency is measured from then. So a server that stalls delays all due
//! calls in the results, not only the one that it was answering (no coordinated omission).
//!
//! Uses HTTP to the edge and the management API, and the store only to read the charges.

mod answer;
pub mod check;
mod error;
pub mod fixtures;
mod generator;
pub mod kind;
pub mod mix;
mod outcome;
mod pace;
pub mod plan;
mod progress;
mod record;
mod report;
pub mod scenario;
pub mod streamed;

use fixtures::Fixtures;
use generator::LoadGenerator;
use plan::LoadPlan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

pub use check::ChargeCheck;
pub use error::LoadTestError;
pub use outcome::{LoadOutcome, PhaseResult};
pub use report::{intention, json, text};

/// Runs the plan with the fixtures, and checks the charges in `store` afterwards, if there is one.
///
/// # Errors
/// [`LoadTestError`]; failed calls are not an error.
pub async fn run(
    plan: LoadPlan,
    fixtures: &Fixtures,
    store: Option<&Store>,
    stop: &Arc<AtomicBool>,
    show: bool,
) -> Result<LoadOutcome, LoadTestError> {
    let before = match store {
        Some(store) => Some(check::read_usage(store, fixtures).await?),
        None => None,
    };
    let generator = Arc::new(LoadGenerator::new(&plan, fixtures)?);
    let mut phases = Vec::new();
    let (mut knee, mut stopped_by) = (None, None);
    for phase in plan.phases() {
        let shown = show.then(|| progress::start(&phase, &generator));
        let seen = generator::phase(&generator, &phase, stop).await?;
        if let Some(shown) = shown {
            shown.end();
        }
        let is_step = phase.is_step;
        let beyond = is_step.then(|| plan.beyond(&seen)).flatten();
        if is_step && beyond.is_none() && !stop.load(Ordering::Acquire) {
            knee = Some(phase.rate);
        }
        phases.push(PhaseResult { phase, seen });
        stopped_by = beyond;
        if stopped_by.is_some() || stop.load(Ordering::Acquire) {
            break;
        }
    }
    let verdict = match (store, before) {
        // The results of the run are reported even if the store is now unreachable.
        (Some(store), Some(before)) => check::verdict(store, fixtures, &before, &generator.ledger())
            .await
            .unwrap_or_else(|error| ChargeCheck::NotChecked(error.to_string())),
        _ => ChargeCheck::NotAsked,
    };
    Ok(LoadOutcome {
        phases,
        interrupted: stop.load(Ordering::Acquire),
        knee,
        stopped_by,
        verdict,
    })
}
