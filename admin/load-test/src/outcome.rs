//! The outcome of a load test.

use crate::check::Verdict;
use crate::plan::{Phase, Plan};
use crate::record::Recorded;

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
    pub fn error_share(&self) -> f64 {
        self.share(Recorded::errors)
    }

    /// The share of calls that a limit denied, of those that were measured.
    pub fn limited_share(&self) -> f64 {
        self.share(Recorded::limited)
    }

    /// Whether everything stayed within the plan's bounds, and nothing is wrong with the money.
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
