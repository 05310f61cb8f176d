//! The outcome of a load test.

use crate::check::ChargeCheck;
use crate::plan::LoadPlan;
use crate::record::RecordedSamples;
use crate::scenario::Phase;

/// Result of a phase.
#[derive(Debug)]
pub struct PhaseResult {
    /// The phase as planned.
    pub phase: Phase,
    /// Counts and latencies of its calls.
    pub seen: RecordedSamples,
}

/// Result of the run.
#[derive(Debug)]
pub struct LoadOutcome {
    /// The phases that ran, the warm-up included.
    pub phases: Vec<PhaseResult>,
    /// True if it was stopped before its end.
    pub interrupted: bool,
    /// The highest rate of a ramp that was answered within the bounds.
    pub knee: Option<u32>,
    /// Why a ramp ended before its last step.
    pub stopped_by: Option<String>,
    /// Result of the ledger check.
    pub verdict: ChargeCheck,
}

impl LoadOutcome {
    /// Returns the share of measured calls that ended in an unexpected way.
    pub fn error_share(&self) -> f64 {
        self.share(RecordedSamples::errors)
    }

    /// Returns the share of measured calls that a limit denied.
    pub fn limited_share(&self) -> f64 {
        self.share(RecordedSamples::limited)
    }

    /// Returns whether all results are within the plan's bounds, and the charges are right.
    pub fn is_good(&self, plan: &LoadPlan) -> bool {
        self.verdict.is_good()
            && self.error_share() <= plan.max_errors
            && self.limited_share() <= plan.max_limited
    }

    fn share(&self, of: fn(&RecordedSamples) -> u64) -> f64 {
        let measured = self.phases.iter().filter(|one| one.phase.measured);
        let (found, calls) = measured.fold((0, 0), |(found, calls), one| {
            (found + of(&one.seen), calls + one.seen.calls())
        });
        found as f64 / (calls.max(1)) as f64
    }
}
