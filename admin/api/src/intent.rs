//! `/intents`: the records of spends and escrow calls, their export as proof, and the decision on those that wait for
//! approval (specification "Payout intent", decisions D23 to D25, D49).

mod doc;

pub(crate) use doc::section;

mod csv;
mod document;
mod filter;

use self::document::{IntentDocument, Links};
use self::filter::{INDEXED, SEARCHED};
use super::spend::{AllowedSpend, SpendPlan, StoredSpend, denied, no_agent, settled, too_much};
use crate::state::{ApiState, Call};
use domain::id;
use domain::intent::{IntentKind, IntentState, Reason};
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply, TextForm, operations};
use history::intents::Intents;
use serde::Serialize;
use store::intent::{ApproverDecision, IntentRecord};
use store::script::plan_limit::EXECUTIONS_MAX;
use store::server_clock;
use store::spend::deny::deny as deny_spend;
use store::spend::{Spend, SpendStep, Spent};
use utoipa::ToSchema;

operations! {
    /// Operations on intents.
    ROUTES: ApiState, Management;

    GET  "/intents",              key(Read, Viewer),     Both, PerMinute, list, Query;
    GET  "/intents/{id}",         key(Read, Viewer),     Both, PerMinute, get;
    GET  "/intents/{id}/export",  key(Read, Viewer),     Both, PerMinute, export, Query;
    POST "/intents/{id}/approve", key(Approve, Manager), Both, PerMinute, approve, Confirmed, AlwaysAllowed;
    POST "/intents/{id}/deny",    key(Approve, Manager), Both, PerMinute, deny, Confirmed, AlwaysAllowed;
}

/// Longest reason of a decision.
const REASON_MAX: usize = 500;

endpoint::answer! { IntentAnswer<'a>, intent: IntentDocument<'a> }

#[derive(Serialize, ToSchema)]
#[schema(as = IntentDenied)]
struct IntentDenied<'a> {
    success: bool,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[schema(value_type = is::Blocked)]
    state: &'static str,
    #[schema(value_type = is::BlockedReason)]
    reason: &'static str,
    #[schema(example = "The approval was denied.")]
    blocked_reason: &'static str,
}

/// `GET /intents`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&[INDEXED, SEARCHED].concat())?;
    let paging = call.paging(&query, "intents")?;
    let (index, filter) = filter::read(&query)?;
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let (part, partial) = match filter.is_all() {
        true => (intents(&call).list(index, paging.page()).await?, None),
        false => {
            let fits = |record: &IntentRecord| filter.fits(record);
            let since = filter.from_ms;
            let found = intents(&call).search((index, since), paging.page(), fits).await?;
            (found.part, Some(found.is_partial))
        }
    };
    Reply::ok(&paging.listing(&part, IntentDocument::brief).partial(partial))
}

/// Returns the caller's intents.
fn intents(call: &Call) -> Intents<'_> {
    Intents::new(&call.state.store, &call.state.archive, call.realm())
}

/// Returns whether records of this kind are intents.
const fn is_intent(kind: IntentKind) -> bool {
    !matches!(kind, IntentKind::Transfer | IntentKind::Deposit)
}

/// `GET /intents/{id}`
///
/// # Errors
/// 404, 500 for a record that was tampered with, 503.
pub async fn get(call: Call) -> Answer {
    let record = require(&call).await?;
    let links = Links::read(&call, &record).await?;
    Reply::ok(&IntentAnswer::new(IntentDocument::whole(&record, &links)))
}

/// `GET /intents/{id}/export`
///
/// # Errors
/// 400, 404, 500 for a record that was tampered with, 503.
pub async fn export(call: Call) -> Answer {
    let query = call.query(&["format"])?;
    let as_csv = match query.get("format") {
        None | Some("json") => false,
        Some("csv") => true,
        Some(_) => return Err(Problem::validation("format must be json or csv.")),
    };
    let record = require(&call).await?;
    if as_csv {
        let name = format!("{}.csv", record.id);
        let row = csv::write(&IntentDocument::brief(&record))?;
        return Reply::file(&name, crate::spreadsheet::CONTENT_TYPE, row);
    }
    let links = Links::read(&call, &record).await?;
    let document = IntentDocument::whole(&record, &links);
    let json = serde_json::to_vec(&document).map_err(|error| {
        tracing::error!(%error, "an intent that is no JSON");
        Code::Internal
    })?;
    Reply::file(&format!("{}.json", record.id), "application/json", json)
}

/// Returns the stored intent in the path, of the caller's account and mode.
async fn require(call: &Call) -> Result<IntentRecord, Problem> {
    let id = call.record_id("id", id::IdKind::Intent)?;
    let record = intents(call).read(id).await?;
    let record = record.filter(|record| is_intent(record.kind));
    let record = record.ok_or_else(|| Problem::new(Code::NotFound, format!("There is no intent `{id}`.")))?;
    require_intact(&record)?;
    Ok(record)
}

/// Refuses a record that was changed manually: it must not be exported as proof.
fn require_intact(record: &IntentRecord) -> Result<(), Problem> {
    if record.is_intact() {
        return Ok(());
    }
    tracing::error!(
        intent = record.id,
        "an intent does not match the hash stored with it"
    );
    Err(Code::Internal.into())
}

/// `POST /intents/{id}/approve`
///
/// # Errors
/// 400, 404, 409 `INTENT_NOT_PENDING`, 503. A denial by the checks, which run again, is an answer.
pub async fn approve(call: Call) -> Answer {
    let why = why(&call)?;
    let record = require_waiting(&call).await?;
    let decision = decision(&call, &record, true).await?;
    let stored = StoredSpend::parse(&record.request)?;
    let transaction = id::IdKind::Transaction.mint(decision.at_ms)?;
    let mut plan_name = call.caller.plan.clone();
    for _ in 0..EXECUTIONS_MAX {
        let plan = SpendPlan::named(&call, &plan_name)?;
        let spend = Spend {
            agent: &record.agent,
            amount: record.amount,
            currency: &record.currency,
            run: stored.run_id.as_deref(),
            recipient: stored.recipient.as_deref(),
            description: record.note.as_deref(),
            transaction: &transaction,
            plan: plan.as_ref().map(SpendPlan::cap),
        };
        let step = SpendStep::Approval {
            record: &record,
            decision: &decision,
            why: why.as_deref(),
        };
        match spend.execute(&call.state.store, &call.scope(), step).await? {
            Spent::Settled { balance } => {
                let allowed = AllowedSpend {
                    intent_id: &record.id,
                    amount: record.amount,
                    currency: &record.currency,
                    transaction: &transaction,
                    balance,
                };
                return settled(&allowed, false);
            }
            Spent::Blocked { reason, intent_id } => {
                return denied(reason, &intent_id, plan.as_ref(), false);
            }
            Spent::Changed => return Err(Code::IntentNotPending.into()),
            Spent::OtherPlan(other) => plan_name = other,
            Spent::NotFound => return Err(no_agent(&record.agent)),
            Spent::TooMuch => return Err(too_much()),
            Spent::Pending | Spent::Known => break,
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// `POST /intents/{id}/deny`
pub async fn deny(call: Call) -> Answer {
    let why = why(&call)?;
    let record = require_waiting(&call).await?;
    let decision = decision(&call, &record, false).await?;
    let (store, scope) = (&call.state.store, call.scope());
    if !deny_spend(store, &scope, &record, &decision, why.as_deref()).await? {
        return Err(Code::IntentNotPending.into());
    }
    Reply::ok(&IntentDenied {
        success: true,
        intent_id: &record.id,
        state: IntentState::Blocked.as_str(),
        reason: Reason::ApprovalDenied.as_str(),
        blocked_reason: Reason::ApprovalDenied.sentence(),
    })
}

/// Returns the reason given for the decision, for the audit log.
fn why(call: &Call) -> Result<Option<String>, Problem> {
    let body = call.body()?.only(&["reason"])?;
    Ok(body.text("reason", TextForm::Lines, REASON_MAX)?.value())
}

async fn require_waiting(call: &Call) -> Result<IntentRecord, Problem> {
    let record = require(call).await?;
    match record.state {
        IntentState::PendingApproval => Ok(record),
        IntentState::Settled | IntentState::Blocked => Err(Code::IntentNotPending.into()),
    }
}

/// Creates a decision at the present time of the store's clock, but not before the request, whose clock may have
/// differed: on another node of a cluster.
async fn decision(call: &Call, record: &IntentRecord, granted: bool) -> Result<ApproverDecision, Problem> {
    Ok(ApproverDecision {
        granted,
        by: call.caller.actor.clone(),
        at_ms: server_clock::now_ms(&call.state.store).await?.max(record.at_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_and_deposits_have_records_that_are_no_intents() {
        for kind in IntentKind::ALL {
            let is_money_alone = [IntentKind::Transfer, IntentKind::Deposit].contains(&kind);
            assert_eq!(is_intent(kind), !is_money_alone, "{kind:?}");
        }
    }
}
