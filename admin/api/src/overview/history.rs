//! Statistics of a range of days: the agents with the highest spend, spending by day, and reasons of denials.

use domain::money::Nanos;
use domain::timestamp::date_from_day;
use endpoint::doc::is;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use store::agent::survey::Survey;
use store::audit::statistics::Day;
use utoipa::ToSchema;

/// Agents shown by themselves.
const TOP: usize = 7;

/// An agent that spent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TopAgent)]
pub(super) struct TopAgent<'a> {
    #[schema(value_type = is::AgentId)]
    agent_id: &'a str,
    #[schema(example = "Research bot")]
    name: Option<&'a str>,
    /// Spend in the span.
    usd: Nanos,
}

/// Spend, calls and denials of one UTC day.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OverviewDay)]
pub(super) struct DayView {
    #[schema(value_type = is::Day)]
    day: String,
    total_usd: Nanos,
    #[schema(example = 120)]
    calls: u64,
    #[schema(example = 2)]
    denied: u64,
    /// Spend of each agent that is listed, and then of all others.
    by_agent: Vec<Nanos>,
}

/// Number of denials for one reason.
#[derive(Serialize, ToSchema)]
#[schema(as = DenialCount)]
pub(super) struct DenialCount {
    #[schema(example = "daily_limit")]
    reason: String,
    #[schema(example = 2)]
    count: u64,
}

/// Consecutive days, and the agents with the highest spend in them.
pub(super) struct OverviewHistory<'a> {
    days: &'a [Day],
    top: Vec<(&'a str, Nanos)>,
}

impl<'a> OverviewHistory<'a> {
    pub(super) fn new(days: &'a [Day]) -> Self {
        let mut sums: HashMap<&str, Nanos> = HashMap::new();
        for (agent, spent) in days.iter().flat_map(|day| &day.agents) {
            let sum = sums.entry(agent).or_default();
            *sum = sum.saturating_add(*spent);
        }
        let mut top: Vec<_> = sums.into_iter().filter(|(_, sum)| *sum > Nanos::ZERO).collect();
        top.sort_unstable_by(|(a, most), (b, other)| other.cmp(most).then(a.cmp(b)));
        top.truncate(TOP);
        Self { days, top }
    }

    /// Returns the agents with the highest spend, highest first.
    pub(super) fn top(&self, survey: &'a Survey) -> Vec<TopAgent<'a>> {
        let top = self.top.iter().map(|(agent, usd)| TopAgent {
            agent_id: agent,
            name: survey
                .agents
                .iter()
                .find(|seen| seen.id == *agent)
                .and_then(|seen| seen.name.as_deref()),
            usd: *usd,
        });
        top.collect()
    }

    pub(super) fn days(&self) -> Vec<DayView> {
        let days = self.days.iter().map(|day| {
            let of = |agent: &str| day.agents.get(agent).copied().unwrap_or_default();
            let mut by_agent: Vec<Nanos> = self.top.iter().map(|(agent, _)| of(agent)).collect();
            let shown = by_agent.iter().copied().fold(Nanos::ZERO, Nanos::saturating_add);
            let rest = day.spent.get().saturating_sub(shown.get());
            by_agent.push(Nanos::from_stored(rest));
            DayView {
                day: date_from_day(day.number),
                total_usd: day.spent,
                calls: day.calls,
                denied: day.refusals(),
                by_agent,
            }
        });
        days.collect()
    }

    /// Returns the reasons of all days, the most frequent first.
    pub(super) fn denials(&self) -> Vec<DenialCount> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, count) in self.days.iter().flat_map(|day| &day.refused) {
            *counts.entry(reason).or_default() += count;
        }
        let mut denials: Vec<DenialCount> = counts
            .into_iter()
            .map(|(reason, count)| DenialCount {
                reason: reason.to_owned(),
                count,
            })
            .collect();
        denials.sort_by_key(|denial| std::cmp::Reverse(denial.count));
        denials
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u64, agents: &[(&str, u64)], others: u64) -> Day {
        let agents: HashMap<String, Nanos> = agents
            .iter()
            .map(|(agent, nanos)| ((*agent).to_owned(), Nanos::from_stored(*nanos)))
            .collect();
        let named: u64 = agents.values().map(|nanos| nanos.get()).sum();
        Day {
            number,
            spent: Nanos::from_stored(named + others),
            others: Nanos::from_stored(others),
            agents,
            refused: BTreeMap::from([("frozen".to_owned(), 1), ("daily_limit".to_owned(), number)]),
            ..Day::default()
        }
    }

    #[test]
    fn the_seven_largest_spenders_are_shown_and_the_rest_as_one() {
        let names: Vec<String> = (1..=9).map(|n| format!("bot-{n}")).collect();
        let amounts: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(1..).collect();
        let days = [day(3, &amounts, 100), day(4, &[("bot-1", 50), ("idle", 0)], 0)];
        let history = OverviewHistory::new(&days);
        let top: Vec<&str> = history.top.iter().map(|(agent, _)| *agent).collect();
        assert_eq!(
            top,
            ["bot-1", "bot-9", "bot-8", "bot-7", "bot-6", "bot-5", "bot-4"]
        );
        let shown = history.days();
        let nanos = |view: &DayView| view.by_agent.iter().map(|nanos| nanos.get()).collect::<Vec<_>>();
        assert_eq!(
            nanos(&shown[0]),
            [1, 9, 8, 7, 6, 5, 4, 105],
            "two agents and the unnamed"
        );
        assert_eq!(nanos(&shown[1]), [50, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(shown[0].day, "1970-01-04");
        assert_eq!(shown[1].denied, 5);
        let denials = history.denials();
        assert_eq!((denials[0].reason.as_str(), denials[0].count), ("daily_limit", 7));
        assert_eq!((denials[1].reason.as_str(), denials[1].count), ("frozen", 2));
    }
}
