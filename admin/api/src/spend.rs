//! `POST /spend`: a spend of an agent, checked against its policy, the plan and its wallet in one step (decision D23).

mod doc;
pub(crate) mod injection;

pub(crate) use doc::section;

mod answer;
mod request;

pub(super) use answer::{AllowedSpend, SpendSettled, denied, settled};
pub(super) use doc::{decided, fields, of_other_wallet};
pub(super) use request::{SpendPlan, SpendRequest, StoredSpend};

use super::idempotency::{IdentifiedRequest, ResolvedKey, require_earlier};
use crate::state::{ApiState, Call};
use answer::{pending, replay};
use domain::id::IdKind;
use domain::money::Nanos;
use endpoint::{Answer, Code, Fields, Problem, operations};
use serde_json::Value;
use store::script::plan_limit::EXECUTIONS_MAX;
use store::spend::{Spend, SpendStep, Spent};

operations! {
    /// Operations on spends.
    ROUTES: ApiState, Management;

    POST "/spend", key(Write, Admin), Both, PerDay, spend, Confirmed, Budgeted;
}

/// Name of this route in fingerprints.
const ROUTE: &str = "spend";

/// `POST /spend`
///
/// # Errors
/// 400, 404, 409 `BALANCE_LIMIT`, 422, 503. A denial is an answer: 400, 402 or 403 with the intent that records it.
pub async fn spend(call: Call) -> Answer {
    let body = call.body()?;
    let key = ResolvedKey::read(&call, &body).await?;
    key.add_intent_id(spend_with_key(&call, &body, &key).await)
}

async fn spend_with_key(call: &Call, body: &Fields<'_>, key: &ResolvedKey) -> Answer {
    let request = SpendRequest::read(body)?;
    let IdentifiedRequest { identity, record, .. } = key.identify(call, ROUTE, &request.canonical()).await?;
    if let Some(record) = record {
        return replay(&record);
    }
    let now = key.at_ms;
    let transaction = IdKind::Transaction.mint(now)?;
    let injections = call.state.spends.injections.as_ref();
    let injection = injections.and_then(|injections| injections.find(request.texts()));
    let mut plan_name = call.caller.plan.clone();
    for _ in 0..EXECUTIONS_MAX {
        let plan = SpendPlan::named(call, &plan_name)?;
        let stored = StoredSpend::new(&request, plan.as_ref());
        let spend = Spend {
            agent: &request.agent,
            amount: request.amount,
            currency: request.currency,
            run: request.run_id.as_deref(),
            recipient: request.recipient.as_deref(),
            description: request.description.as_deref(),
            transaction: &transaction,
            plan: plan.as_ref().map(SpendPlan::cap),
        };
        let step = SpendStep::Request {
            identity: &identity,
            at_ms: now,
            request: &stored.to_json()?,
            injection,
        };
        let allowed = |intent_id, transaction, balance| AllowedSpend {
            intent_id,
            amount: request.amount,
            currency: request.currency,
            transaction,
            balance,
        };
        match spend.execute(&call.state.store, &call.scope(), step).await? {
            Spent::Settled { balance } => {
                call.state.spends.metrics.spend("settled");
                return settled(&allowed(&identity.id, &transaction, balance), false);
            }
            Spent::Pending => {
                call.state.spends.metrics.spend("pending_approval");
                return pending(&allowed(&identity.id, &transaction, None), false);
            }
            Spent::Blocked { reason, intent_id } => {
                call.state.spends.metrics.spend(reason.as_str());
                return denied(reason, &intent_id, plan.as_ref(), false);
            }
            Spent::Known => return replay(&require_earlier(call, &identity).await?),
            Spent::OtherPlan(other) => plan_name = other,
            Spent::NotFound => return Err(no_agent(&request.agent)),
            Spent::TooMuch => return Err(too_much()),
            Spent::Changed => break,
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// Searches a text for another account, as the text of a spend is searched.
///
/// # Errors
/// 402 `INJECTION_DETECTED`; nothing was written.
pub(crate) fn require_harmless(call: &Call, field: &'static str, value: &Value) -> Result<(), Problem> {
    let injections = call.state.spends.injections.as_ref();
    injections.map_or(Ok(()), |injections| injections.require_none_in(field, value))
}

/// Returns the 404 for an agent that does not exist (decision D22).
pub(super) fn no_agent(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("agent: there is no agent `{id}`."))
}

/// Explains that the counters cannot hold the sum.
pub(super) fn too_much_message() -> String {
    let most = Nanos::from_stored(i64::MAX.unsigned_abs());
    format!("What is counted for the agent or its account would pass {most} USD.")
}

/// Returns the 409 for counters that cannot hold the sum.
pub(super) fn too_much() -> Problem {
    Problem::new(Code::BalanceLimit, too_much_message())
}
