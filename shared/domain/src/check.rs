//! Every check that decides on a call or a spend, and what it measured: what a dry run lists and an explanation is made of.
//!
//! A check passes when what was spent and what is asked for together stay within the limit. The words are those of the
//! denial reasons; the order is the order in which the checks are made (specification §4.4, decisions D23, D29).

mod sentence;

pub use sentence::{Asked, usd};

use super::period::{DAY_MS, Period};

/// What a check counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nano-USD.
    Usd,
    /// Keys, requests or agents.
    Count,
    /// Nothing: it is so or it is not.
    State,
}

/// When what a check counted starts again from nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// Never by itself.
    Never,
    /// With the key's minute, which only the store knows.
    Minute,
    /// At 00:00 UTC.
    Day,
    /// On the 1st at 00:00 UTC.
    Month,
}

impl Reset {
    /// When what is counted at `at_ms` starts again; `None` where the calendar does not tell.
    #[must_use]
    pub fn after(self, at_ms: u64) -> Option<u64> {
        let day = at_ms / DAY_MS;
        match self {
            Self::Never | Self::Minute => None,
            Self::Day => Some((day + 1) * DAY_MS),
            Self::Month => {
                let month = Period::at(at_ms).month;
                (day + 1..=day + 31)
                    .map(|day| day * DAY_MS)
                    .find(|at| Period::at(*at).month != month)
            }
        }
    }
}

macro_rules! checks {
    ($($(#[$doc:meta])+ $name:ident = $word:literal, $unit:ident, $reset:ident;)+) => {
        /// A check. The order is the order of precedence.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckName { $($(#[$doc])+ $name,)+ }

        impl CheckName {
            /// Every check, in order of precedence.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its word: the reason of a denial by it.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $word,)+ } }

            /// What it counts in.
            #[must_use]
            pub const fn unit(self) -> Unit { match self { $(Self::$name => Unit::$unit,)+ } }

            /// When what it counted starts again.
            #[must_use]
            pub const fn reset(self) -> Reset { match self { $(Self::$name => Reset::$reset,)+ } }

            /// The check of a word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|check| check.as_str() == word)
            }
        }
    };
}

checks! {
    /// Place of the virtual key among the account's active ones, against the plan.
    PlanKeyLimit = "plan_key_limit", Count, Never;
    /// Requests of the virtual key in its minute, against the plan.
    RateLimited = "rate_limited", Count, Minute;
    /// A provider key is stored.
    NoProviderKey = "no_provider_key", State, Never;
    /// No text of the spend tries to instruct an agent.
    InjectionDetected = "injection_detected", State, Never;
    /// The agent is not frozen.
    Frozen = "frozen", State, Never;
    /// A policy with Cap enabled holds for the agent.
    CapDisabled = "cap_disabled", State, Never;
    /// The policy's limit of one spend.
    PerTransactionLimit = "per_transaction_limit", Usd, Never;
    /// The policy's limit of a run.
    PerRunLimit = "per_run_limit", Usd, Never;
    /// The policy's limit of the UTC day.
    DailyLimit = "daily_limit", Usd, Day;
    /// The policy's limit of the UTC month.
    MonthlyLimit = "monthly_limit", Usd, Month;
    /// Agents that may spend this month, against the plan.
    PlanAgentLimit = "plan_agent_limit", Count, Month;
    /// USD that the plan tracks in a month.
    PlanLimit = "plan_limit", Usd, Month;
    /// What the wallet may spend in a UTC day.
    SpendLimit = "spend_limit", Usd, Day;
    /// What the wallet holds; it is the limit.
    InsufficientBalance = "insufficient_balance", Usd, Never;
    /// The amount above which somebody has to approve.
    ApprovalRequired = "approval_required", Usd, Never;
}

/// A check as it stands for one call or spend, before that is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Which one.
    pub name: CheckName,
    /// What is allowed; `None` where nothing binds.
    pub limit: Option<u64>,
    /// What is used up; `None` where nothing is counted.
    pub spent: Option<u64>,
    /// The part of it in calls under way; `None` where there is no such part.
    pub held: Option<u64>,
    /// Whether it lets the call or spend through.
    pub passes: bool,
}

impl Check {
    /// A check that is so or is not.
    #[must_use]
    pub const fn state(name: CheckName, passes: bool) -> Self {
        Self {
            name,
            limit: None,
            spent: None,
            held: None,
            passes,
        }
    }

    /// A check that `spent` and `more` together stay within `limit`. Nothing more is always let through.
    #[must_use]
    pub fn within(name: CheckName, limit: Option<u64>, spent: u64, more: u64) -> Self {
        let over = limit.is_some_and(|limit| spent.saturating_add(more) > limit);
        Self {
            name,
            limit,
            spent: Some(spent),
            held: None,
            passes: !over || more == 0,
        }
    }

    /// The same, `held` of it being in calls under way.
    #[must_use]
    pub fn with_held(mut self, held: u64) -> Self {
        // A call under way since yesterday is no part of what was spent today.
        self.held = self.spent.map(|spent| held.min(spent));
        self
    }
}

/// The check that decides: the first that does not pass.
#[must_use]
pub fn deciding(checks: &[Check]) -> Option<&Check> {
    checks.iter().find(|check| !check.passes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denial::Denial;
    use crate::timestamp::{iso_from_ms, ms_from_iso};

    #[test]
    fn every_denial_but_one_is_a_check_in_the_same_order() {
        let checks: Vec<&str> = CheckName::ALL.iter().map(|check| check.as_str()).collect();
        let mut last = 0;
        for denial in &Denial::ALL[1..] {
            let at = checks.iter().position(|word| *word == denial.reason());
            let at = at.unwrap_or_else(|| panic!("{denial:?} is no check"));
            assert!(at >= last, "{denial:?} comes too early");
            last = at;
            assert_eq!(CheckName::parse(denial.reason()), Some(CheckName::ALL[at]));
        }
        assert_eq!(
            CheckName::parse(Denial::ALL[0].reason()),
            None,
            "no check decides that"
        );
    }

    #[test]
    fn a_limit_is_reached_exactly_and_not_passed() {
        let passes = |limit, spent, more| Check::within(CheckName::DailyLimit, limit, spent, more).passes;
        assert!(passes(Some(100), 60, 40) && !passes(Some(100), 60, 41));
        assert!(passes(None, u64::MAX, 1) && !passes(Some(u64::MAX - 1), u64::MAX, 1));
        assert!(passes(Some(0), 5, 0), "nothing is always let through");
        let check = Check::within(CheckName::DailyLimit, None, 60, 1).with_held(70);
        assert_eq!(check.held, Some(60), "a part is never more than the whole");
    }

    #[test]
    fn periods_end_at_midnight_utc() {
        let after = |reset: Reset, at: &str| reset.after(ms_from_iso(at).unwrap()).map(iso_from_ms);
        let text = |at: &str| Some(at.to_owned());
        assert_eq!(
            after(Reset::Day, "2026-12-31T23:59:59.999Z"),
            text("2027-01-01T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Day, "2027-01-01T00:00:00Z"),
            text("2027-01-02T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Month, "2026-12-31T12:00:00Z"),
            text("2027-01-01T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Month, "2028-02-01T00:00:00Z"),
            text("2028-03-01T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Month, "2026-10-01T00:00:00Z"),
            text("2026-11-01T00:00:00.000Z")
        );
        assert_eq!(after(Reset::Minute, "2026-10-01T00:00:00Z"), None);
    }
}
