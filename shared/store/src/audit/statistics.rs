//! Daily statistics of an account and mode (UTC): approved calls, spend by agent, denials by reason. The script that
//! seals entries adds each one once; this module reads them.
//!
//! Only sealed entries count: a call in flight is not included yet.

use crate::keys::Realm;
use crate::{Store, StoreError};
use domain::money::Nanos;
use std::collections::{BTreeMap, HashMap};

/// Days for which statistics are kept.
pub const DAYS_KEPT: u64 = 400;
/// Maximum number of agents listed by name for a day; the spend of further ones is one sum.
pub const AGENTS_MAX: usize = 1000;
/// Prefix of the fields with an agent's spend.
pub(crate) const AGENT_PREFIX: &str = "a:";
/// Represents the agents that are not listed. No agent id can have this form.
pub(crate) const OTHERS: &str = "*";
/// Prefix of the fields with a reason's count.
pub(crate) const REASON_PREFIX: &str = "n:";

/// Statistics of one day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Day {
    /// Days since 1970-01-01.
    pub number: u64,
    /// Approved calls.
    pub calls: u64,
    /// Cost of calls and spends.
    pub spent: Nanos,
    /// Refused calls and spends by reason.
    pub refused: BTreeMap<String, u64>,
    /// Spend by agent id, agents with free calls included.
    pub agents: HashMap<String, Nanos>,
    /// Spend of the agents that are not named.
    pub others: Nanos,
}

impl Day {
    /// Reads the days `first` to `last`, in order, empty ones included.
    pub async fn read(store: &Store, realm: &Realm, first: u64, last: u64) -> Result<Vec<Self>, StoreError> {
        let keys = (first..=last).map(|number| realm.audit_day(number));
        let records: Vec<HashMap<String, String>> = store.each("HGETALL", keys).await?;
        let days = (first..).zip(records);
        days.map(|(number, fields)| Self::from_fields(number, &fields))
            .collect::<Option<_>>()
            .ok_or_else(|| StoreError::unexpected("statistics of a day"))
    }

    /// Returns the count of refused calls and spends.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    fn from_fields(number: u64, fields: &HashMap<String, String>) -> Option<Self> {
        let mut day = Self {
            number,
            ..Self::default()
        };
        for (field, value) in fields {
            // Negative only if a charge was given back after an earlier version had sealed it.
            let value: i64 = value.parse().ok()?;
            let value = u64::try_from(value).unwrap_or(0);
            let nanos = Nanos::from_stored(value);
            match field.as_str() {
                "calls" => day.calls = value,
                "spent" => day.spent = nanos,
                "agents" => {}
                field => {
                    if let Some(reason) = field.strip_prefix(REASON_PREFIX) {
                        day.refused.insert(reason.to_owned(), value);
                    } else if let Some(agent) = field.strip_prefix(AGENT_PREFIX) {
                        match agent {
                            OTHERS => day.others = nanos,
                            agent => drop(day.agents.insert(agent.to_owned(), nanos)),
                        }
                    }
                }
            }
        }
        Some(day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_and_no_amount_is_below_zero() {
        let fields = [
            ("calls", "3"),
            ("spent", "12"),
            ("agents", "2"),
            ("a:bot", "-5"),
            ("a:calls", "10"),
            ("a:*", "7"),
            ("n:frozen", "2"),
            ("n:daily_limit", "1"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let day = Day::from_fields(9, &fields.into()).unwrap();
        assert_eq!((day.number, day.calls, day.spent.get()), (9, 3, 12));
        assert_eq!((day.refusals(), day.others.get()), (3, 7));
        assert_eq!((day.agents["bot"].get(), day.agents["calls"].get()), (0, 10));
        assert_eq!(
            Day::from_fields(9, &HashMap::from([("calls".to_owned(), "x".to_owned())])),
            None
        );
    }
}
