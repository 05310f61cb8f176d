//! The checks of a decision: a group `<spent>:<limit>:<held>` for each check, in a fixed order.

use crate::money::Nanos;
use crate::reason::{Denial, Unit};
use serde_json::{Value, json};

/// The checks of a line, in order. Each is named by the reason of its denial. The names are hashed with the entries, so
/// a list never changes. A release with other checks adds a list of another length, and raises
/// [`LINE_VERSION`](super::LINE_VERSION).
const LISTS: [&[(Denial, Unit)]; 1] = [&[
    (Denial::PlanKeyLimit, Unit::Count),
    (Denial::RateLimited, Unit::Count),
    (Denial::PerRunLimit, Unit::Usd),
    (Denial::DailyLimit, Unit::Usd),
    (Denial::MonthlyLimit, Unit::Usd),
    (Denial::PlanAgentLimit, Unit::Count),
    (Denial::PlanLimit, Unit::Usd),
]];

/// One check, with its numbers before the call's own charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedCheck {
    /// Check, named by the denial that it can cause.
    pub check: Denial,
    /// The unit of its numbers.
    pub unit: Unit,
    /// Amount used up before, including `held`: in nano-USD, or as a number of keys, requests or agents.
    pub spent: u64,
    /// Limit; `None` if unlimited.
    pub limit: Option<u64>,
    /// The part of `spent` held by calls in flight.
    pub held: Option<u64>,
}

impl RecordedCheck {
    /// Parses all groups. An empty group means that the check was not made. The month's held amount equals the day's
    /// and is stored once. `None` if malformed.
    pub fn parse(text: &str) -> Option<Vec<Self>> {
        let groups: Vec<&str> = text.split(',').collect();
        let list = LISTS.into_iter().find(|list| list.len() == groups.len())?;
        let looked_at = list.iter().zip(groups).filter(|(_, group)| !group.is_empty());
        let checks = looked_at.map(|((check, unit), group)| {
            let mut words = group.split(':');
            let mut next = || words.next();
            let (spent, limit, held) = (next()?, next()?, next()?);
            let number = |text: &str| match text {
                "" => Some(None),
                digits => digits.parse().ok().map(Some),
            };
            Some(Self {
                check: *check,
                unit: *unit,
                spent: spent.parse().ok()?,
                limit: number(limit)?,
                held: number(held)?,
            })
        });
        let mut checks: Vec<Self> = checks.collect::<Option<_>>()?;
        let of_day = checks.iter().find(|check| check.check == Denial::DailyLimit);
        let held = of_day.and_then(|day| day.held);
        for month in checks
            .iter_mut()
            .filter(|check| check.check == Denial::MonthlyLimit)
        {
            month.held = month.held.or(held);
        }
        Some(checks)
    }

    /// Returns whether the check was made. Before an approval all checks are made. The checks of Cap and the plan are
    /// made in order, up to the one that denies. Reasons that precede them (a frozen agent, no policy) imply only the
    /// checks of the key.
    pub(crate) fn was_made(&self, denied: Option<Denial>) -> bool {
        match denied {
            None => true,
            Some(Denial::ServiceUnavailable | Denial::NoProviderKey) => false,
            Some(denial) => self.check <= denial,
        }
    }

    /// Returns the check as shown in an entry; `denied` is the reason that decided.
    pub fn shown(&self, denied: Option<Denial>) -> Value {
        let (check, passes) = (self.check.reason(), denied != Some(self.check));
        if self.unit != Unit::Usd {
            return json!({ "check": check, "limit": self.limit, "spent": self.spent, "held": null, "passes": passes });
        }
        let usd = |nanos: u64| Nanos::from_stored(nanos).as_double();
        json!({
            "check": check,
            "limit": self.limit.map(usd),
            "limitNanos": self.limit.map(|nanos| nanos.to_string()),
            "spent": usd(self.spent),
            "spentNanos": self.spent.to_string(),
            "held": self.held.map(usd),
            "heldNanos": self.held.map(|nanos| nanos.to_string()),
            "passes": passes,
        })
    }
}
