//! `GET /agents/{id}/usage`: what an agent spent, and where that leaves each of its caps.

use super::agents;
use crate::problem::{Code, Problem};
use crate::routes::{Answer, Call, Reply};
use serde::Serialize;
use shared::clock::iso_from_ms;
use shared::domain::check::CheckName;
use shared::domain::money::Nanos;
use shared::store::agent::AgentRecord;
use shared::store::policy::PolicyRecord;
use shared::store::script::standing::{Look, Seen};

/// What is shown as the policy where several account-wide ones hold together, as in the intents that they allowed.
const STRICTEST: &str = "account-policies";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage<'a> {
    success: bool,
    agent_id: &'a str,
    as_of: String,
    spent_today_usd: Nanos,
    spent_month_usd: Nanos,
    held_usd: Nanos,
    wallet_usd: Option<Nanos>,
    policy: Option<PolicyView>,
    checks: Vec<CheckView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyView {
    id: String,
    name: String,
    agent_own: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckView {
    check: &'static str,
    limit_usd: Option<Nanos>,
    /// Of a limit on one run or one spend there is no sum.
    spent_usd: Option<Nanos>,
    remaining_usd: Option<Nanos>,
}

impl CheckView {
    fn of(check: CheckName, limit: Option<Nanos>, spent: Option<Nanos>) -> Self {
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
///
/// # Errors
/// 400, 404, 503.
pub async fn get(call: Call) -> Answer {
    let agent = agents::require(&call, call.agent()?).await?;
    let look = Look {
        account: &call.caller.account,
        mode: call.caller.mode,
        agent: &agent.id,
        run: None,
        key_id: None,
        provider: &call.app.provider,
    };
    let seen = look
        .read(&call.app.store)
        .await?
        .ok_or(Code::ServiceUnavailable)?;
    let standing = &seen.standing;
    Reply::ok(&Usage {
        success: true,
        agent_id: &agent.id,
        as_of: iso_from_ms(seen.at_ms),
        spent_today_usd: standing.cap.day_spent,
        spent_month_usd: standing.cap.month_spent,
        held_usd: standing.held,
        wallet_usd: standing.wallet.map(|wallet| wallet.balance),
        policy: policy(&call, &agent, &seen).await?,
        checks: checks(&seen),
    })
}

/// The limits in amounts, in the order in which they are checked.
fn checks(seen: &Seen) -> Vec<CheckView> {
    let standing = &seen.standing;
    let cap = standing.policy.unwrap_or_default();
    // An agent without a wallet has no limit of one, and nothing was taken from it.
    let wallet = standing.wallet.unwrap_or_default();
    vec![
        CheckView::of(
            CheckName::PerTransactionLimit,
            standing.limits.per_transaction,
            None,
        ),
        CheckView::of(CheckName::PerRunLimit, cap.per_run, None),
        CheckView::of(CheckName::DailyLimit, cap.daily, Some(standing.cap.day_spent)),
        CheckView::of(
            CheckName::MonthlyLimit,
            cap.monthly,
            Some(standing.cap.month_spent),
        ),
        CheckView::of(CheckName::SpendLimit, wallet.spend_limit, Some(wallet.day_spent)),
    ]
}

/// The policy that holds: the agent's own, or the account-wide one or ones.
async fn policy(call: &Call, agent: &AgentRecord, seen: &Seen) -> Result<Option<PolicyView>, Problem> {
    let (store, keys, mode) = (&call.app.store, call.keys(), call.caller.mode);
    if let Some(id) = &agent.policy_id
        && let Some(policy) = PolicyRecord::read(store, &keys, mode, id).await?
    {
        return Ok(Some(PolicyView {
            id: policy.id,
            name: policy.name,
            agent_own: true,
        }));
    }
    if seen.standing.policy.is_none() {
        return Ok(None);
    }
    let ids = PolicyRecord::account_wide(store, &keys, mode).await?;
    let only = match ids.as_slice() {
        [id] => PolicyRecord::read(store, &keys, mode, id).await?,
        _ => None,
    };
    Ok(Some(match only {
        Some(policy) => PolicyView {
            id: policy.id,
            name: policy.name,
            agent_own: false,
        },
        None => PolicyView {
            id: STRICTEST.to_owned(),
            name: format!("The strictest of {} account-wide policies", ids.len()),
            agent_own: false,
        },
    }))
}
