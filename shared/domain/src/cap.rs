//! Cap as a pure function. The `authorize` script is tested against it, and explanations of decisions use it.
//!
//! Order and meaning: specification §4.4 step 5 and decision D21. A limit that is not set does not bind; spending
//! exactly up to a limit is allowed, one nano more is not; a limit of 0 denies every cost above zero.

use super::check::{self, Check, CheckName};
use super::denial::Denial;
use super::money::Nanos;

/// The part of an agent's policy that Cap checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapPolicy {
    /// True if Cap applies; its limits are ignored otherwise.
    pub enabled: bool,
    /// Largest spend of one run.
    pub per_run: Option<Nanos>,
    /// Largest spend of a UTC day.
    pub daily: Option<Nanos>,
    /// Largest spend of a UTC month.
    pub monthly: Option<Nanos>,
}

/// The plan's part of Cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapPlan {
    /// Agents that may spend in a month.
    pub agents: Option<u64>,
    /// Tracked USD of all agents in a month.
    pub tracked: Option<Nanos>,
}

/// Counters of agent, run and account before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapSnapshot {
    /// The agent is frozen.
    pub frozen: bool,
    /// Charged to the run so far, including open holds.
    pub run_spent: Nanos,
    /// Charged to the agent today.
    pub day_spent: Nanos,
    /// Charged to the agent this month.
    pub month_spent: Nanos,
    /// The agent already has a slot this month.
    pub has_slot: bool,
    /// Agents of the account that have a slot this month.
    pub slots_used: u64,
    /// Charged to the account this month.
    pub tracked_spent: Nanos,
}

/// All checks of Cap.
pub type CapChecks = [Check; 7];

/// Returns every check of Cap, in order of precedence, including those after a failed one. `held` is the part of the
/// agent's spending that belongs to calls in flight. The store keeps no such sum for a run or an account.
pub fn checks(
    policy: Option<&CapPolicy>,
    plan: &CapPlan,
    snapshot: &CapSnapshot,
    held: Nanos,
    amount: Nanos,
) -> CapChecks {
    let enabled = policy.is_some_and(|policy| policy.enabled);
    let limits = policy.copied().unwrap_or_default();
    let usd = |name, limit: Option<Nanos>, spent: Nanos| {
        Check::within(name, limit.map(Nanos::get), spent.get(), amount.get())
    };
    // Only other agents count: an agent that already has a slot keeps it.
    let others = snapshot.slots_used.saturating_sub(snapshot.has_slot.into());
    let mut agents = Check::within(CheckName::PlanAgentLimit, plan.agents, others, 1);
    agents.passes |= snapshot.has_slot;
    let held = held.get();
    [
        Check::state(CheckName::Frozen, !snapshot.frozen),
        Check::state(CheckName::CapDisabled, enabled),
        usd(CheckName::PerRunLimit, limits.per_run, snapshot.run_spent),
        usd(CheckName::DailyLimit, limits.daily, snapshot.day_spent).with_held(held),
        usd(CheckName::MonthlyLimit, limits.monthly, snapshot.month_spent).with_held(held),
        agents,
        usd(CheckName::PlanLimit, plan.tracked, snapshot.tracked_spent),
    ]
}

/// Decides whether `estimate` may be charged.
///
/// # Errors
/// The first [`Denial`] in Cap's order.
pub fn decide(
    policy: Option<&CapPolicy>,
    plan: &CapPlan,
    snapshot: &CapSnapshot,
    estimate: Nanos,
) -> Result<(), Denial> {
    let checks = checks(policy, plan, snapshot, Nanos::ZERO, estimate);
    match check::deciding(&checks) {
        None => Ok(()),
        // Every check has a denial. If one had none, nothing would be charged.
        Some(check) => Err(Denial::from_reason(check.name.as_str()).unwrap_or(Denial::ServiceUnavailable)),
    }
}

/// The limits of a policy that apply only to `POST /spend` and wallets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpendPolicy {
    /// Largest single spend.
    pub per_transaction: Option<Nanos>,
    /// A spend above this waits for approval.
    pub approval_threshold: Option<Nanos>,
    /// A balance below this is reported.
    pub low_balance: Option<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(nanos: u64) -> Nanos {
        Nanos::new(nanos).unwrap()
    }

    #[test]
    fn a_limit_is_reached_exactly_and_not_passed() {
        let plan = CapPlan::default();
        let policy = CapPolicy {
            enabled: true,
            daily: Some(usd(100)),
            ..CapPolicy::default()
        };
        let snapshot = CapSnapshot {
            day_spent: usd(60),
            ..CapSnapshot::default()
        };
        assert_eq!(decide(Some(&policy), &plan, &snapshot, usd(40)), Ok(()));
        assert_eq!(
            decide(Some(&policy), &plan, &snapshot, usd(41)),
            Err(Denial::DailyLimit)
        );
        let zero = CapPolicy {
            enabled: true,
            daily: Some(Nanos::ZERO),
            ..CapPolicy::default()
        };
        assert_eq!(
            decide(Some(&zero), &plan, &CapSnapshot::default(), usd(1)),
            Err(Denial::DailyLimit)
        );
        assert_eq!(
            decide(Some(&zero), &plan, &CapSnapshot::default(), Nanos::ZERO),
            Ok(())
        );
    }

    /// For all combinations of failing conditions, the first in the documented order decides.
    #[test]
    fn the_first_failing_check_answers() {
        let order = [
            Denial::Frozen,
            Denial::CapDisabled,
            Denial::PerRunLimit,
            Denial::DailyLimit,
            Denial::MonthlyLimit,
            Denial::PlanAgentLimit,
            Denial::PlanLimit,
        ];
        for failing in 0_u32..1 << order.len() {
            let fails = |denial: Denial| {
                let at = order.iter().position(|d| *d == denial).unwrap();
                failing & (1 << at) != 0
            };
            let limit = |denial| Some(if fails(denial) { usd(9) } else { usd(10) });
            let policy = CapPolicy {
                enabled: !fails(Denial::CapDisabled),
                per_run: limit(Denial::PerRunLimit),
                daily: limit(Denial::DailyLimit),
                monthly: limit(Denial::MonthlyLimit),
            };
            let agents = Some(if fails(Denial::PlanAgentLimit) { 3 } else { 4 });
            let plan = CapPlan {
                agents,
                tracked: limit(Denial::PlanLimit),
            };
            let snapshot = CapSnapshot {
                frozen: fails(Denial::Frozen),
                slots_used: 3,
                ..CapSnapshot::default()
            };
            let expected = order
                .iter()
                .copied()
                .find(|denial| fails(*denial))
                .map_or(Ok(()), Err);
            assert_eq!(
                decide(Some(&policy), &plan, &snapshot, usd(10)),
                expected,
                "{failing:07b}"
            );
        }
    }
}
