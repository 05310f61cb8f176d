//! Answers to a spend. A repeated answer is built from the record alone, and differs from the first only in `replayed`
//! (decisions D23, D26, D59).

use super::request::{SpendPlan, StoredSpend};
use axum::http::StatusCode;
use domain::intent::{IntentState, Reason};
use domain::money::Nanos;
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply};
use serde::Serialize;
use store::intent::IntentRecord;
use utoipa::ToSchema;

/// A spend that was not refused, as input of its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowedSpend<'a> {
    /// `int_…`
    pub(crate) intent_id: &'a str,
    pub(crate) amount: Nanos,
    /// `USD` or `USDC`.
    pub(crate) currency: &'a str,
    /// The transaction, which exists only if a wallet changed.
    pub(crate) transaction: &'a str,
    /// Balance of the wallet afterwards; `None` without a wallet.
    pub(crate) balance: Option<Nanos>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SpendSettled)]
pub(crate) struct SpendSettled<'a> {
    success: bool,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[schema(value_type = is::Settled)]
    state: &'static str,
    /// Null if the agent has no wallet.
    #[serde(rename = "transactionId")]
    #[schema(value_type = Option<is::TransactionId>)]
    transaction_id: Option<&'a str>,
    amount: Nanos,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    /// Remaining balance of the wallet; null if there is none.
    balance: Option<Nanos>,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))))]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SpendPending)]
pub(super) struct SpendPending<'a> {
    success: bool,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[schema(value_type = is::PendingApproval)]
    state: &'static str,
    amount: Nanos,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))))]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SpendDenied)]
pub(super) struct SpendDenied<'a> {
    /// False.
    #[schema(example = false)]
    success: bool,
    #[schema(example = "The spend would push the agent over its daily limit.")]
    error: &'static str,
    /// The reason in capitals.
    #[schema(example = "DAILY_LIMIT")]
    code: String,
    #[schema(value_type = is::BlockedReason)]
    reason: &'static str,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[schema(value_type = is::Blocked)]
    state: &'static str,
    /// The sentence again.
    #[schema(example = "The spend would push the agent over its daily limit.")]
    blocked_reason: &'static str,
    #[serde(flatten)]
    plan: Option<PlanMet<'a>>,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))))]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlanMet)]
pub(super) struct PlanMet<'a> {
    #[schema(example = "builder")]
    plan: &'a str,
    /// Limit of the plan: agents or USD.
    #[schema(example = "10")]
    limit: String,
    #[schema(example = "startup")]
    upgrade_to: Option<&'a str>,
    #[schema(example = "https://tollgate.example/plan?to=startup")]
    upgrade_url: Option<&'a str>,
}

impl<'a> SpendDenied<'a> {
    /// Returns the answer to a spend that is refused for this reason; `plan` if the plan's limit is the reason.
    pub(super) fn new(reason: Reason, intent_id: &'a str, plan: Option<PlanMet<'a>>, replayed: bool) -> Self {
        Self {
            success: false,
            error: reason.sentence(),
            code: reason.as_str().to_ascii_uppercase(),
            reason: reason.as_str(),
            intent_id,
            state: IntentState::Blocked.as_str(),
            blocked_reason: reason.sentence(),
            plan,
            replayed,
        }
    }
}

/// Returns 200: the money moved.
///
/// # Errors
/// 500.
pub(crate) fn settled(spend: &AllowedSpend<'_>, replayed: bool) -> Answer {
    Reply::ok(&SpendSettled {
        success: true,
        intent_id: spend.intent_id,
        state: IntentState::Settled.as_str(),
        transaction_id: spend.balance.map(|_| spend.transaction),
        amount: spend.amount,
        currency: spend.currency,
        balance: spend.balance,
        replayed,
    })
}

/// Returns 202: the spend waits for approval.
///
/// # Errors
/// 500.
pub(super) fn pending(spend: &AllowedSpend<'_>, replayed: bool) -> Answer {
    let body = SpendPending {
        success: true,
        intent_id: spend.intent_id,
        state: IntentState::PendingApproval.as_str(),
        amount: spend.amount,
        currency: spend.currency,
        replayed,
    };
    Reply::with_status(StatusCode::ACCEPTED, &body)
}

/// Returns 400, 402, 403 or 409: the spend was refused, and the intent records the reason.
///
/// # Errors
/// 500.
pub(crate) fn denied(reason: Reason, intent_id: &str, plan: Option<&SpendPlan>, replayed: bool) -> Answer {
    let limit = |plan: &SpendPlan| match reason {
        Reason::PlanAgentLimit => plan.agents.map(|agents| agents.to_string()),
        Reason::PlanLimit => plan
            .tracked_nanos
            .map(|nanos| Nanos::from_stored(nanos).to_string()),
        _ => None,
    };
    let plan = plan.and_then(|plan| {
        Some(PlanMet {
            limit: limit(plan)?,
            plan: &plan.plan,
            upgrade_to: plan.upgrade_to.as_deref(),
            upgrade_url: plan.upgrade_url.as_deref(),
        })
    });
    let body = SpendDenied::new(reason, intent_id, plan, replayed);
    Reply::with_status(status(reason), &body)
}

/// Returns the status of a denial (decision D23).
const fn status(reason: Reason) -> StatusCode {
    match reason {
        Reason::Frozen | Reason::CapDisabled => StatusCode::FORBIDDEN,
        Reason::InsufficientBalance => StatusCode::BAD_REQUEST,
        Reason::WalletClosed => StatusCode::CONFLICT,
        _ => StatusCode::PAYMENT_REQUIRED,
    }
}

/// Returns the first answer to the request of `record`, whatever was decided since.
///
/// # Errors
/// 500 for a malformed record.
pub(super) fn replay(record: &IntentRecord) -> Answer {
    let spend = AllowedSpend {
        intent_id: &record.id,
        amount: record.amount,
        currency: &record.currency,
        transaction: record.transaction.as_deref().unwrap_or_default(),
        balance: record.balance,
    };
    match (record.first, record.reason) {
        (IntentState::Settled, _) => settled(&spend, true),
        (IntentState::PendingApproval, _) => pending(&spend, true),
        (IntentState::Blocked, Some(reason)) => {
            let stored = StoredSpend::parse(&record.request)?;
            denied(reason, &record.id, stored.plan.as_ref(), true)
        }
        (IntentState::Blocked, None) => {
            tracing::error!(intent = record.id, "a blocked intent without a reason");
            Err(Problem::from(Code::Internal))
        }
    }
}
