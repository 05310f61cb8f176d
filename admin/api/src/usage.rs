//! `GET /agents/{id}/usage`: spending of an agent, and the remainder of each of its limits; and [`GET
//! /usage`](over_time), the usage of the account over time.

mod doc;
mod over_time;

pub(crate) use doc::section;

use super::agent;
use crate::state::{ApiState, Call};
use domain::check::CheckName;
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply, operations};
use serde::Serialize;
use store::agent::AgentRecord;
use store::call::snapshot::{CallSnapshot, SnapshotQuery};
use store::policy::PolicyRecord;
use utoipa::ToSchema;

operations! {
    /// Operations on usage.
    ROUTES: ApiState, Management;

    GET "/agents/{id}/usage", key(Read, Viewer), Both, PerMinute, get;
    GET "/usage",             key(Read, Viewer), Both, PerMinute, over_time::get, Query;
}

/// Policy id shown if several account-wide policies apply together, as in the intents that they allowed.
const STRICTEST: &str = "account-policies";

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentUsage)]
struct AgentUsage<'a> {
    success: bool,
    #[schema(value_type = is::AgentId)]
    agent_id: &'a str,
    #[schema(value_type = is::Time)]
    as_of: String,
    spent_today_usd: Nanos,
    spent_month_usd: Nanos,
    /// Amount held by calls in flight; part of the spent amount.
    held_usd: Nanos,
    /// Balance of its wallet; null without a wallet.
    wallet_usd: Option<Nanos>,
    /// The policy that applies; null without one.
    policy: Option<AppliedPolicy>,
    /// The limits in USD, in the order of the checks.
    checks: Vec<UsageCheck>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsagePolicy)]
struct AppliedPolicy {
    /// The policy, or `account-policies` where several hold together.
    #[schema(example = "pol_01KAJ4M7Q8R5T6V9W0X1Y2Z3A4")]
    id: String,
    #[schema(example = "Research budget")]
    name: String,
    /// True for the agent's own policy; false for those of the account.
    agent_own: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageCheck)]
struct UsageCheck {
    #[schema(value_type = is::CheckWord)]
    check: &'static str,
    /// Null if there is no limit.
    limit_usd: Option<Nanos>,
    /// Null for a limit of one run or one spend, which has no sum.
    spent_usd: Option<Nanos>,
    remaining_usd: Option<Nanos>,
}

impl UsageCheck {
    fn new(check: CheckName, limit: Option<Nanos>, spent: Option<Nanos>) -> Self {
        let left = |limit: Nanos, spent: Nanos| Nanos::from_stored(limit.get().saturating_sub(spent.get()));
        Self {
            check: check.as_str(),
            limit_usd: limit,
            spent_usd: spent,
            remaining_usd: limit.zip(spent).map(|(limit, spent)| left(limit, spent)),
        }
    }
}

/// `GET /agents/{id}/usage`
pub async fn get(call: Call) -> Answer {
    let agent = agent::require(&call, call.agent()?).await?;
    let query = SnapshotQuery {
        realm: &call.realm(),
        agent: &agent.id,
        run: None,
        key_id: None,
        provider: call.state.edge.providers.default_name(),
    };
    let snapshot = query
        .read(&call.state.store)
        .await?
        .ok_or(Code::ServiceUnavailable)?;
    let inputs = &snapshot.spend;
    Reply::ok(&AgentUsage {
        success: true,
        agent_id: &agent.id,
        as_of: iso_from_ms(snapshot.at_ms),
        spent_today_usd: inputs.cap.day_spent,
        spent_month_usd: inputs.cap.month_spent,
        held_usd: inputs.held,
        wallet_usd: inputs.wallet.map(|wallet| wallet.balance),
        policy: policy(&call, &agent, &snapshot).await?,
        checks: checks(&snapshot),
    })
}

/// Returns the limits in amounts, in the order of the checks.
fn checks(snapshot: &CallSnapshot) -> Vec<UsageCheck> {
    let inputs = &snapshot.spend;
    let cap = inputs.policy.unwrap_or_default();
    // An agent without a wallet has no wallet limit, and nothing was debited.
    let wallet = inputs.wallet.unwrap_or_default();
    vec![
        UsageCheck::new(
            CheckName::PerTransactionLimit,
            inputs.limits.per_transaction,
            None,
        ),
        UsageCheck::new(CheckName::PerRunLimit, cap.per_run, None),
        UsageCheck::new(CheckName::DailyLimit, cap.daily, Some(inputs.cap.day_spent)),
        UsageCheck::new(CheckName::MonthlyLimit, cap.monthly, Some(inputs.cap.month_spent)),
        UsageCheck::new(CheckName::SpendLimit, wallet.spend_limit, Some(wallet.day_spent)),
    ]
}

/// Returns the policy that applies: the agent's own, or the account-wide one or ones.
async fn policy(
    call: &Call,
    agent: &AgentRecord,
    snapshot: &CallSnapshot,
) -> Result<Option<AppliedPolicy>, Problem> {
    let (store, realm) = (&call.state.store, call.realm());
    if let Some(id) = &agent.policy_id
        && let Some(policy) = PolicyRecord::read(store, &realm, id).await?
    {
        return Ok(Some(AppliedPolicy {
            id: policy.id,
            name: policy.name,
            agent_own: true,
        }));
    }
    if snapshot.spend.policy.is_none() {
        return Ok(None);
    }
    let ids = PolicyRecord::account_wide(store, &realm).await?;
    let only = match ids.as_slice() {
        [id] => PolicyRecord::read(store, &realm, id).await?,
        _ => None,
    };
    Ok(Some(match only {
        Some(policy) => AppliedPolicy {
            id: policy.id,
            name: policy.name,
            agent_own: false,
        },
        None => AppliedPolicy {
            id: STRICTEST.to_owned(),
            name: format!("The strictest of {} account-wide policies", ids.len()),
            agent_own: false,
        },
    }))
}
