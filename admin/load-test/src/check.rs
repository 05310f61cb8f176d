//! The overspend check: after the run, compares each agent's amounts in the ledger with its caps and with the charges
//! in the answers.

use super::fixtures::{Fixtures, LoadAgent};
use super::generator::ReportedCharges;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use std::time::{Duration, Instant};
use store::call::snapshot;
use store::call::snapshot::SnapshotQuery;
use store::keys::Realm;
use store::{Store, StoreError};

/// Maximum wait until the calls in flight are settled.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// Interval of reading the ledger.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Balance and usage of an agent at one time.
#[derive(Debug, Clone, Copy)]
pub struct UsageSnapshot {
    period: Period,
    day: Nanos,
    month: Nanos,
    held: Nanos,
    daily: Option<Nanos>,
    monthly: Option<Nanos>,
}

/// Ledger amounts of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAmounts {
    /// Agent of the load test.
    pub agent: LoadAgent,
    /// Daily cap.
    pub cap: Option<Nanos>,
    /// Spent today, in all.
    pub spent: Nanos,
    /// Charged during the run.
    pub charged: Nanos,
    /// Sum of the charges in the answers.
    pub seen: Nanos,
    /// Number of calls without an answer that reports the charge.
    pub unknown: u64,
    /// Number of calls whose callers left in the middle, as planned.
    pub left: u64,
    /// Sum of the initial estimates of those calls.
    pub left_estimated: Nanos,
    /// Number of calls that cost more than their initial estimate.
    pub above_estimate: u64,
    /// Faults.
    pub wrong: Vec<String>,
}

/// Result of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChargeCheck {
    /// The check was made, with one line per agent.
    Checked(Vec<AgentAmounts>),
    /// The check was not requested: there was no access to the store.
    NotAsked,
    /// The check was requested but not possible, for this reason.
    NotChecked(String),
}

impl ChargeCheck {
    /// Returns whether the run may count as good: not if a requested check was not possible.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Checked(lines) => lines.iter().all(|line| line.wrong.is_empty()),
            Self::NotAsked => true,
            Self::NotChecked(_) => false,
        }
    }
}

/// Reads the current amounts of all agents; `None` for agents that the store does not know.
pub async fn read_usage(
    store: &Store,
    fixtures: &Fixtures,
) -> Result<Vec<Option<UsageSnapshot>>, StoreError> {
    let mut amounts = Vec::new();
    for agent in fixtures.agents() {
        amounts.push(usage_of(store, agent).await?);
    }
    Ok(amounts)
}

async fn usage_of(store: &Store, agent: &LoadAgent) -> Result<Option<UsageSnapshot>, StoreError> {
    let query = SnapshotQuery {
        realm: &Realm::new(&agent.account, Mode::Live),
        agent: &agent.id,
        run: None,
        key_id: None,
        provider: "",
    };
    let seen: Option<snapshot::CallSnapshot> = query.read(store).await?;
    Ok(seen.map(|seen| {
        let (cap, policy) = (seen.spend.cap, seen.spend.policy);
        UsageSnapshot {
            period: Period::at(seen.at_ms),
            day: cap.day_spent,
            month: cap.month_spent,
            held: seen.spend.held,
            daily: policy.and_then(|policy| policy.daily),
            monthly: policy.and_then(|policy| policy.monthly),
        }
    }))
}

/// Waits until no call is under way, for a bounded time, and compares.
pub(super) async fn verdict(
    store: &Store,
    fixtures: &Fixtures,
    before: &[Option<UsageSnapshot>],
    seen: &[ReportedCharges],
) -> Result<ChargeCheck, StoreError> {
    let deadline = Instant::now() + SETTLED_WITHIN;
    let mut lines = Vec::new();
    for ((agent, before), seen) in fixtures.agents().iter().zip(before).zip(seen) {
        let Some(before) = before else {
            let text = format!("the store of this configuration does not know the {}", agent.id);
            return Ok(ChargeCheck::NotChecked(text));
        };
        let after = loop {
            let Some(after) = usage_of(store, agent).await? else {
                let text = format!("agent {} left the store meanwhile", agent.id);
                return Ok(ChargeCheck::NotChecked(text));
            };
            if after.held == Nanos::ZERO || Instant::now() > deadline {
                break after;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        if after.period.month != before.period.month {
            let text = "the month ended during the run: its counters begin anew".to_owned();
            return Ok(ChargeCheck::NotChecked(text));
        }
        lines.push(judge(agent, before, &after, *seen));
    }
    Ok(ChargeCheck::Checked(lines))
}

fn judge(
    agent: &LoadAgent,
    before: &UsageSnapshot,
    after: &UsageSnapshot,
    seen: ReportedCharges,
) -> AgentAmounts {
    let charged = after.month.get().saturating_sub(before.month.get());
    let usd = Nanos::from_stored;
    let mut wrong = Vec::new();
    for (name, spent, cap) in [
        ("daily", after.day, after.daily),
        ("monthly", after.month, after.monthly),
    ] {
        if let Some(cap) = cap.filter(|cap| spent > *cap) {
            wrong.push(format!("OVERSPENT: {spent} USD of a {name} cap of {cap} USD"));
        }
    }
    if after.held > Nanos::ZERO {
        let held = after.held;
        wrong.push(format!(
            "{held} USD are still held for calls that were not settled within {SETTLED_WITHIN:?}"
        ));
    }
    let (said, charged) = (usd(seen.nanos), usd(charged));
    match seen.unknown + seen.left {
        0 if charged != said => wrong.push(format!("charged {charged} USD, and the answers say {said} USD")),
        1.. if charged < said => {
            wrong.push(format!(
                "charged only {charged} USD, and the answers say {said} USD"
            ));
        }
        1.. if charged == said && seen.unknown == 0 && seen.left_estimates > 0 => {
            let left = seen.left;
            wrong.push(format!(
                "{left} callers left in the middle, and were charged nothing"
            ));
        }
        _ => {}
    }
    AgentAmounts {
        agent: agent.clone(),
        cap: after.daily,
        spent: after.day,
        charged,
        seen: said,
        unknown: seen.unknown,
        left: seen.left,
        left_estimated: usd(seen.left_estimates),
        above_estimate: seen.above_estimate,
        wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(day: u64, month: u64, held: u64, daily: Option<u64>) -> UsageSnapshot {
        let usd = Nanos::from_stored;
        UsageSnapshot {
            period: Period::at(0),
            day: usd(day),
            month: usd(month),
            held: usd(held),
            daily: daily.map(usd),
            monthly: None,
        }
    }

    fn wrong(after: UsageSnapshot, nanos: u64, unknown: u64) -> usize {
        wrong_with(
            after,
            ReportedCharges {
                nanos,
                unknown,
                ..ReportedCharges::default()
            },
        )
    }

    fn wrong_with(after: UsageSnapshot, seen: ReportedCharges) -> usize {
        let agent = LoadAgent {
            account: "acct_1".to_owned(),
            id: "a".to_owned(),
        };
        let before = usage(10, 100, 0, None);
        judge(&agent, &before, &after, seen).wrong.len()
    }

    #[test]
    fn callers_who_left_are_charged_something() {
        let left = |month: u64, left_estimates: u64, unknown: u64| {
            let seen = ReportedCharges {
                nanos: 50,
                left: 2,
                left_estimates,
                unknown,
                ..ReportedCharges::default()
            };
            wrong_with(usage(60, month, 0, None), seen)
        };
        assert_eq!(left(151, 20, 0), 0, "their charge is not known");
        assert_eq!(left(149, 20, 0), 1, "less than the answers say");
        assert_eq!(left(150, 20, 0), 1, "nothing");
        assert_eq!(left(150, 0, 0), 0, "a model without a price");
        assert_eq!(left(150, 20, 1), 0, "nor that of another call");
    }

    #[test]
    fn a_check_that_could_not_be_made_is_not_good() {
        assert!(ChargeCheck::NotAsked.is_good() && ChargeCheck::Checked(Vec::new()).is_good());
        assert!(!ChargeCheck::NotChecked("the month ended".to_owned()).is_good());
    }

    #[test]
    fn each_thing_that_can_be_wrong_is_noticed() {
        assert_eq!(wrong(usage(60, 150, 0, Some(60)), 50, 0), 0, "exactly the cap");
        assert_eq!(wrong(usage(60, 150, 0, Some(59)), 50, 0), 1, "over the cap");
        assert_eq!(wrong(usage(60, 150, 5, None), 50, 0), 1, "an open hold");
        assert_eq!(wrong(usage(60, 151, 0, None), 50, 0), 1, "charged too much");
        assert_eq!(wrong(usage(60, 149, 0, None), 50, 0), 1, "charged too little");
        assert_eq!(
            wrong(usage(60, 170, 0, None), 50, 2),
            0,
            "of two calls the charge is unknown"
        );
        assert_eq!(wrong(usage(60, 140, 0, None), 50, 2), 1);
    }
}
