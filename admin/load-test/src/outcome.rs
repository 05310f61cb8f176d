//! The outcome of a load test.

use crate::check::Verdict;
use crate::plan::Plan;
use crate::record::Recorded;
use crate::scenario::Phase;

/// Result of a phase.
#[derive(Debug)]
pub struct Measured {
    /// The phase as planned.
    pub phase: Phase,
    /// Counts and latencies of its calls.
    pub seen: Recorded,
}

/// Result of the run.
#[derive(Debug)]
pub struct Outcome {
    /// The phases that ran, the warm-up included.
    pub phases: Vec<Measured>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// The highest rate of a ramp that was answered within the bounds.
    pub knee: Option<u32>,
    /// Why a ramp ended before its last step.
    pub stopped_by: Option<String>,
    /// Result of the ledger check.
    pub verdict: Verdict,
}

impl Outcome {
    /// Returns the share of measured calls that ended in an unexpected way.
    pub fn error_share(&self) -> f64 {
        self.share(Recorded::errors)
    }

    /// Returns the share of measured calls that a limit denied.
    pub fn limited_share(&self) -> f64 {
        self.share(Recorded::limited)
    }

    /// Returns whether all results are within the plan's bounds, and the charges are right.
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
