//! `GET /overview`: spending, denials and matters that need attention, in one answer.
//!
//! Today, this month and the held amount are the counters that Cap checks, so calls in flight are included; in test
//! mode, which has no calls, they are the statistics. Days and refusals are statistics that are added up while the
//! audit trail is sealed.

mod doc;

pub(crate) use doc::section;

mod attention;
mod history;

use super::catch_up;
use crate::state::{ApiState, Call};
use crate::threshold::tracked_limit;
use attention::AttentionItem;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::period::Period;
use domain::timestamp::{date_from_day, iso_from_ms};
use endpoint::doc::is;
use endpoint::{Answer, Problem, QueryParams, Reply, operations, whole_number};
use history::{OverviewHistory, TopAgent};
use serde::Serialize;
use store::account::counters::AccountCounters;
use store::agent::survey::{AgentSummary, Survey};
use store::audit::statistics::Day;
use store::server_clock;
use store::threshold::LimitUsage;
use store::virtual_key::active_agents;
use utoipa::ToSchema;

operations! {
    /// Operations on the overview.
    ROUTES: ApiState, Management;

    GET "/overview", key(Read, Viewer), Both, PerMinute, get, Query;
}

const DAYS_DEFAULT: u64 = 30;
const DAYS_MAX: u64 = 90;
/// Maximum number of agents without a wallet that are named.
const WITHOUT_WALLET_MAX: usize = 50;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Overview)]
struct Overview<'a> {
    success: bool,
    #[schema(value_type = is::ModeName)]
    mode: &'static str,
    #[schema(value_type = is::Time)]
    as_of: String,
    /// The present UTC day.
    #[schema(value_type = is::Day)]
    today: String,
    spend: OverviewSpend,
    totals: OverviewTotals,
    /// The agents with the highest spend in the span, highest first; at most seven.
    top_agents: Vec<TopAgent<'a>>,
    /// Every day of the span, oldest first.
    days: Vec<history::DayView>,
    /// Reasons of denied calls and spends in the span, most frequent first.
    denials: Vec<history::DenialCount>,
    /// Matters that need attention; at most fifty.
    attention: Vec<AttentionItem>,
    /// Total number of such matters.
    #[schema(example = 1)]
    attention_total: u64,
    /// Agents that exist by a policy or a key alone, so that they are not in the list of agents; by their ids, at most
    /// fifty.
    #[schema(value_type = Vec<is::AgentId>)]
    without_wallet: Vec<&'a str>,
    /// Total number of such agents among those that were read: those that can have spent this month, and the holders of
    /// the oldest 1,000 active virtual keys.
    #[schema(example = 1)]
    without_wallet_total: u64,
    /// True if some data was not read because of the limits of one answer.
    partial: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OverviewSpend)]
struct OverviewSpend {
    /// Includes the estimates of calls in flight.
    today_usd: Nanos,
    month_usd: Nanos,
    /// Amount held by calls in flight.
    held_usd: Nanos,
    /// The plan's limit of tracked USD per month; null without a limit.
    tracked_limit_usd: Option<Nanos>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OverviewTotals)]
struct OverviewTotals {
    /// Agents with a wallet.
    #[schema(example = 4)]
    agents: u64,
    #[schema(example = 1)]
    frozen_agents: u64,
    #[schema(example = 3)]
    active_virtual_keys: u64,
}

impl OverviewSpend {
    /// Of live mode: the counters of the agents, and that of the account for the month, `tracked`. It was
    /// `tracked_before` before it was known which agents have spent.
    fn from_counters(
        survey: &Survey,
        month: &[Day],
        [tracked_before, tracked]: [Nanos; 2],
        tracked_limit_usd: Option<Nanos>,
    ) -> Self {
        let sum = |amount: fn(&AgentSummary) -> Nanos| total(survey.agents.iter().map(amount));
        // Every agent with a settled charge is among them, unless there are too many. So the account's charge beyond
        // them is held by calls under way, of agents that were deleted meanwhile. What was charged since may be of an
        // agent that is not among them yet.
        let is_whole = !survey.partial && month.iter().all(|day| day.others == Nanos::ZERO);
        let charged = tracked.min(tracked_before).get();
        let beyond = charged.saturating_sub(sum(|agent| agent.month).get());
        let beyond = Nanos::from_stored(if is_whole { beyond } else { 0 });
        Self {
            today_usd: sum(|agent| agent.day).saturating_add(beyond),
            month_usd: tracked,
            held_usd: sum(|agent| agent.held).saturating_add(beyond),
            tracked_limit_usd,
        }
    }

    /// Of test mode: it has spends only, which end when they are made.
    fn from_days(month: &[Day], tracked_limit_usd: Option<Nanos>) -> Self {
        Self {
            today_usd: month.last().map(|day| day.spent).unwrap_or_default(),
            month_usd: total(month.iter().map(|day| day.spent)),
            held_usd: Nanos::ZERO,
            tracked_limit_usd,
        }
    }
}

fn total(amounts: impl Iterator<Item = Nanos>) -> Nanos {
    amounts.fold(Nanos::ZERO, Nanos::saturating_add)
}

/// `GET /overview`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn get(call: Call) -> Answer {
    let days = days(&call.query(&["days"])?)?;
    let (store, realm) = (&call.state.store, call.realm());
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let at_ms = server_clock::now_ms(store).await?;
    let period = Period::at(at_ms);
    let mut account = AccountCounters::read(store, &realm, period).await?;
    let before = account.tracked;
    let sealed = catch_up::catch_up(&call).await?;
    let first = period.day.saturating_sub(days - 1);
    let of_month = period.month_start();
    let read = Day::read(store, &realm, first.min(of_month), period.day).await?;
    let since = |first: u64| &read[read.partition_point(|day| day.number < first)..];
    let (recent, month) = (since(first), since(of_month));
    // Deleted agents and those without a wallet are among them.
    let spenders = month.iter().flat_map(|day| day.agents.keys().cloned());
    let holders = match realm.mode() {
        Mode::Live => active_agents(store, realm.keys()).await?,
        Mode::Test => Vec::new(),
    };
    let survey = Survey::read(store, &realm, period, spenders.chain(holders)).await?;
    account.tracked = survey.tracked.unwrap_or(before);
    let frozen = survey.frozen(store, &realm).await?;
    let without_wallet = ids(survey.without_wallet(store, &realm).await?);
    let tracked_limit = tracked_limit(&call)?;
    let reads = attention::OverviewReads {
        survey: &survey,
        frozen: &frozen,
        low_balance: account.low_balance,
        usages: LimitUsage::reached(&survey, &account, tracked_limit),
        period,
    };
    let (attention, attention_total) = attention::items(&call, reads).await?;
    let history = OverviewHistory::new(recent);
    Reply::ok(&Overview {
        success: true,
        mode: realm.mode().as_str(),
        as_of: iso_from_ms(at_ms),
        today: date_from_day(period.day),
        spend: match realm.mode() {
            Mode::Live => {
                OverviewSpend::from_counters(&survey, month, [before, account.tracked], tracked_limit)
            }
            Mode::Test => OverviewSpend::from_days(month, tracked_limit),
        },
        totals: OverviewTotals {
            agents: survey.rows,
            frozen_agents: frozen.len() as u64,
            active_virtual_keys: account.active_keys,
        },
        top_agents: history.top(&survey),
        days: history.days(),
        denials: history.denials(),
        attention,
        attention_total,
        without_wallet_total: without_wallet.len() as u64,
        without_wallet: without_wallet.into_iter().take(WITHOUT_WALLET_MAX).collect(),
        partial: survey.partial || !sealed,
    })
}

/// Returns the ids of agents in their order.
fn ids(agents: Vec<&AgentSummary>) -> Vec<&str> {
    let mut ids: Vec<&str> = agents.into_iter().map(|agent| agent.id.as_str()).collect();
    ids.sort_unstable();
    ids
}

fn days(query: &QueryParams) -> Result<u64, Problem> {
    let Some(text) = query.get("days") else {
        return Ok(DAYS_DEFAULT);
    };
    let days = whole_number(text).filter(|days| (1..=DAYS_MAX).contains(days));
    days.ok_or_else(|| Problem::validation(format!("days must be a whole number from 1 to {DAYS_MAX}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(amount: u64) -> Nanos {
        Nanos::from_stored(amount)
    }

    fn day(number: u64, spent: u64, others: u64) -> Day {
        Day {
            number,
            spent: nanos(spent),
            others: nanos(others),
            ..Day::default()
        }
    }

    #[test]
    fn open_calls_of_a_deleted_agent_are_held_and_spent_today() {
        let mut agent = AgentSummary::default();
        (agent.day, agent.month, agent.held) = (nanos(3), nanos(10), nanos(1));
        let survey = Survey {
            agents: vec![agent],
            ..Survey::default()
        };
        let read = |survey: &Survey, month: &[Day], before: u64, tracked: u64| {
            let spend = OverviewSpend::from_counters(survey, month, [nanos(before), nanos(tracked)], None);
            [spend.today_usd, spend.month_usd, spend.held_usd].map(Nanos::get)
        };
        let of = |survey: &Survey, month: &[Day], tracked: u64| read(survey, month, tracked, tracked);
        let days = [day(1, 6, 0), day(2, 2, 0)];
        assert_eq!(of(&survey, &days, 10), [3, 10, 1]);
        assert_eq!(of(&survey, &days, 15), [8, 15, 6]);
        assert_eq!(of(&survey, &days, 9), [3, 9, 1], "read a moment later");
        assert_eq!(read(&survey, &days, 10, 12), [3, 12, 1], "charged meanwhile");
        assert_eq!(read(&survey, &days, 12, 10), [3, 10, 1], "settled meanwhile");
        // If not every agent was read, the rest can have been spent on any day.
        assert_eq!(of(&survey, &[day(1, 9, 3)], 15), [3, 15, 1]);
        let partial = Survey {
            partial: true,
            ..survey
        };
        assert_eq!(of(&partial, &days, 15), [3, 15, 1]);
    }

    #[test]
    fn test_mode_is_the_sum_of_the_days_of_the_month() {
        let spend = OverviewSpend::from_days(&[day(1, 10, 4), day(2, 0, 0), day(3, 5, 0)], None);
        let shown = [spend.today_usd, spend.month_usd, spend.held_usd].map(Nanos::get);
        assert_eq!(shown, [5, 15, 0]);
    }
}
