//! Thresholds of limits that agents or the account have reached: computed from the counters that Cap and the plan
//! check, including calls in flight.

pub mod notice;

use crate::account::counters::AccountCounters;
use crate::agent::survey::{AgentSummary, Survey};
use crate::audit::statistics::Day;
use crate::keys::Realm;
use crate::policy::watched::WatchedLimits;
use crate::{Store, StoreError};
use domain::money::Nanos;
use domain::period::Period;
use domain::threshold::{Threshold, Watched, permille};
use notice::Notice;

/// Usage of a limit by an agent or by the account, at or above its lowest threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitUsage {
    /// Watched limit: a cap, or the tracked spend of the plan.
    pub watched: Watched,
    /// The agent; `None` for the account's plan.
    pub agent: Option<String>,
    /// Display name of the agent.
    pub name: Option<String>,
    /// Charged in the period.
    pub spent: Nanos,
    /// Value of the limit.
    pub limit: Nanos,
    /// The highest threshold that was reached.
    pub threshold: Threshold,
}

impl LimitUsage {
    /// Reads the agents of an account, and its limits of which a threshold is reached: see [`Self::reached`]. Agents
    /// with neither wallet nor provider key are known once their calls of today are sealed.
    pub async fn read(
        store: &Store,
        realm: &Realm,
        period: Period,
        tracked_limit: Option<Nanos>,
    ) -> Result<(Survey, Vec<Self>), StoreError> {
        let spenders = Day::read(store, realm, period.day, period.day).await?;
        let spenders = spenders.into_iter().flat_map(|day| day.agents.into_keys());
        let survey = Survey::read(store, realm, period, spenders).await?;
        let account = AccountCounters::read(store, realm, period).await?;
        let usages = Self::reached(&survey, &account, tracked_limit);
        Ok((survey, usages))
    }

    /// Returns the limits of an account of which a threshold is reached, the highest share first. `tracked_limit` is
    /// the plan's limit of tracked USD.
    pub fn reached(survey: &Survey, account: &AccountCounters, tracked_limit: Option<Nanos>) -> Vec<Self> {
        let plan = Self::from_limit(Watched::Plan, None, account.tracked, tracked_limit);
        let agents = survey.agents.iter().flat_map(|agent| {
            let limits = agent.own_limits.unwrap_or(account.limits);
            let limits = if limits.is_enabled {
                limits
            } else {
                WatchedLimits::default()
            };
            [
                Self::from_limit(Watched::Day, Some(agent), agent.day, limits.day),
                Self::from_limit(Watched::Month, Some(agent), agent.month, limits.month),
                Self::from_limit(Watched::Spend, Some(agent), agent.wallet_day, agent.spend_limit),
            ]
        });
        let mut all: Vec<Self> = agents.chain([plan]).flatten().collect();
        all.sort_by(|a, b| (b.permille(), &a.agent, a.watched).cmp(&(a.permille(), &b.agent, b.watched)));
        all
    }

    /// Returns the usage; `None` without a limit, or below its lowest threshold.
    fn from_limit(
        watched: Watched,
        agent: Option<&AgentSummary>,
        spent: Nanos,
        limit: Option<Nanos>,
    ) -> Option<Self> {
        let limit = limit?;
        Some(Self {
            watched,
            agent: agent.map(|agent| agent.id.clone()),
            name: agent.and_then(|agent| agent.name.clone()),
            spent,
            limit,
            threshold: Threshold::reached(spent, limit)?,
        })
    }

    /// Returns the share of the limit, in tenths of a percent.
    pub fn permille(&self) -> u64 {
        permille(self.spent, self.limit)
    }

    /// Returns the notice of a threshold of this limit.
    pub fn notice(&self, threshold: Threshold) -> Notice<'_> {
        Notice {
            watched: self.watched,
            threshold,
            agent: self.agent.as_deref(),
        }
    }

    /// Reads when the threshold that each has reached was noticed in this period, in ms since 1970.
    pub async fn noticed_at(
        usages: &[Self],
        store: &Store,
        realm: &Realm,
        period: Period,
    ) -> Result<Vec<Option<u64>>, StoreError> {
        let notices: Vec<Notice<'_>> = usages.iter().map(|usage| usage.notice(usage.threshold)).collect();
        Notice::recorded_at(&notices, store, realm, period).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_stored(nanos)
    }

    fn agent(id: &str, day: u64, month: u64, own: Option<WatchedLimits>) -> AgentSummary {
        let mut agent = AgentSummary::default();
        id.clone_into(&mut agent.id);
        (agent.day, agent.month, agent.own_limits) = (nanos(day), nanos(month), own);
        agent
    }

    fn with_spend_limit(mut agent: AgentSummary, spent: u64, limit: u64) -> AgentSummary {
        (agent.wallet_day, agent.spend_limit) = (nanos(spent), Some(nanos(limit)));
        agent
    }

    #[test]
    fn own_limits_count_before_those_of_the_account_and_the_highest_share_is_first() {
        let limits = |day, month| WatchedLimits {
            is_enabled: true,
            day,
            month,
        };
        let off = WatchedLimits {
            is_enabled: false,
            ..limits(Some(nanos(1)), None)
        };
        let survey = Survey {
            agents: vec![
                agent("own", 96, 96, Some(limits(Some(nanos(100)), None))),
                agent("account", 40, 160, None),
                agent("none", 900, 900, Some(limits(None, None))),
                agent("off", 900, 900, Some(off)),
                agent("below", 49, 49, None),
                with_spend_limit(agent("wallet", 7, 7, None), 7, 10),
            ],
            ..Survey::default()
        };
        let account = AccountCounters {
            tracked: nanos(500),
            limits: limits(Some(nanos(100)), Some(nanos(200))),
            ..AccountCounters::default()
        };
        let all = LimitUsage::reached(&survey, &account, Some(nanos(1000)));
        let shown: Vec<_> = all
            .iter()
            .map(|one| (one.agent.as_deref(), one.watched, one.permille(), one.threshold))
            .collect();
        assert_eq!(
            shown,
            [
                (Some("own"), Watched::Day, 960, Threshold::Nearly),
                (Some("account"), Watched::Month, 800, Threshold::Most),
                (Some("wallet"), Watched::Spend, 700, Threshold::Half),
                (None, Watched::Plan, 500, Threshold::Half),
            ]
        );
        assert_eq!(
            LimitUsage::reached(&survey, &account, None).len(),
            3,
            "a plan without a limit"
        );
    }
}
