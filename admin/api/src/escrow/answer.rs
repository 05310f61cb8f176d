//! The answers to calls on escrows, the first time and again (decisions D26, D27, D59).

use super::view::{self, CreatedEscrowView};
use crate::state::Call;
use domain::intent::{IntentKind, IntentState, Reason};
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply};
use serde::Serialize;
use store::escrow::script::{CreatedEscrow, EscrowBlocked, NewEscrow, PartyDecision};
use store::escrow::{Escrow, EscrowStatus};
use store::intent::IntentRecord;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = EscrowCreated)]
pub(super) struct EscrowCreated<'a> {
    success: bool,
    escrow: CreatedEscrowView<'a>,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))))]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EscrowFunded)]
pub(super) struct EscrowFunded<'a> {
    success: bool,
    #[schema(value_type = is::EscrowNumber)]
    escrow_id: u64,
    #[schema(value_type = is::EscrowFundedWord)]
    status: &'static str,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[serde(rename = "intent_id")]
    #[schema(value_type = is::IntentId)]
    intent: &'a str,
    /// The remaining balance of the payer's wallet.
    balance: Nanos,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, extensions(("x-not-in-examples" = json!(true))))]
    replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EscrowResolved)]
pub(super) struct EscrowResolved<'a> {
    success: bool,
    #[schema(value_type = is::EscrowNumber)]
    escrow_id: u64,
    #[schema(value_type = is::EscrowResolution)]
    status: &'static str,
    /// Present only for disputes; may be null.
    #[serde(rename = "dispute_reason", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, required = false, extensions(("x-can-be-left-out" = json!(true))), example = "Nothing was delivered.")]
    dispute_reason: Option<Option<&'a str>>,
    #[schema(value_type = is::IntentId)]
    intent_id: &'a str,
    #[serde(rename = "intent_id")]
    #[schema(value_type = is::IntentId)]
    intent: &'a str,
}

pub(super) fn created(new: &NewEscrow<'_>, created: CreatedEscrow, intent: &str) -> Answer {
    let escrow = CreatedEscrowView {
        id: created.number,
        from_wallet_id: new.payer.wallet,
        to_wallet_id: new.payee.wallet,
        amount: new.amount,
        currency: new.currency,
        status: EscrowStatus::Pending.as_str(),
        conditions: view::object(new.conditions)?,
        created_at: iso_from_ms(created.at_ms),
    };
    show_created(escrow, intent, false)
}

fn show_created(escrow: CreatedEscrowView<'_>, intent_id: &str, replayed: bool) -> Answer {
    Reply::ok(&EscrowCreated {
        success: true,
        escrow,
        intent_id,
        replayed,
    })
}

/// Answers a funding; `balance` is the remaining balance of the payer's wallet.
pub(super) fn funded(number: u64, balance: Nanos, intent: &str) -> Answer {
    show_funded(number, balance, intent, false)
}

fn show_funded(number: u64, balance: Nanos, intent: &str, replayed: bool) -> Answer {
    Reply::ok(&EscrowFunded {
        success: true,
        escrow_id: number,
        status: EscrowStatus::Funded.as_str(),
        intent_id: intent,
        intent,
        balance,
        replayed,
    })
}

/// Answers a release or a dispute.
pub(super) fn resolved(number: u64, decision: PartyDecision<'_>, intent: &str) -> Answer {
    let (status, dispute_reason) = match decision {
        PartyDecision::Release => (EscrowStatus::Released, None),
        PartyDecision::Dispute(reason) => (EscrowStatus::Disputed, Some(reason)),
    };
    Reply::ok(&EscrowResolved {
        success: true,
        escrow_id: number,
        status: status.as_str(),
        dispute_reason,
        intent_id: intent,
        intent,
    })
}

/// Answers a call that was refused with an intent. `number` is `None` for an escrow that was not created.
pub(super) fn refused(number: Option<u64>, blocked: &EscrowBlocked) -> Problem {
    let sentence = blocked.reason.sentence();
    let mut problem = Problem::new(code(blocked.reason), sentence);
    if let Some(number) = number {
        problem = problem.with("escrowId", number);
    }
    if let Some(status) = blocked.status {
        problem = problem.with("status", status.as_str());
    }
    with_intent(problem, &blocked.intent)
        .with("success", false)
        .with("state", IntentState::Blocked.as_str())
        .with("reason", blocked.reason.as_str())
        .with("blocked_reason", sentence)
}

fn with_intent(problem: Problem, intent: &str) -> Problem {
    problem.with("intentId", intent).with("intent_id", intent)
}

const fn code(reason: Reason) -> Code {
    match reason {
        Reason::EscrowNotPending | Reason::EscrowNotFunded => Code::EscrowWrongState,
        Reason::EscrowReleased | Reason::EscrowDisputed | Reason::EscrowRefunded => Code::EscrowResolved,
        Reason::InsufficientBalance => Code::InsufficientBalance,
        Reason::Frozen => Code::Frozen,
        Reason::WalletClosed => Code::WalletClosed,
        // Calls on an escrow are refused for no other reason.
        _ => Code::Internal,
    }
}

/// Answers a request that was made before with the same answer, marked as replayed. A repeated release or dispute gets
/// 409 with the first answer.
pub(super) async fn replay(call: &Call, record: &IntentRecord) -> Answer {
    if let Some(reason) = record.reason {
        let blocked = EscrowBlocked {
            intent: record.id.clone(),
            reason,
            status: status_met(record.kind, reason),
        };
        return Err(refused(record.escrow, &blocked).with("replayed", true));
    }
    let incomplete = || {
        tracing::error!(
            intent = record.id,
            "an escrow's intent lacks what its answer needs"
        );
        Problem::from(Code::Internal)
    };
    let number = record.escrow.ok_or_else(incomplete)?;
    match record.kind {
        IntentKind::EscrowCreate => {
            let escrow = Escrow::read(&call.state.store, number)
                .await?
                .ok_or_else(incomplete)?;
            show_created(view::as_created(&escrow)?, &record.id, true)
        }
        IntentKind::EscrowFund => {
            let balance = record.balance.ok_or_else(incomplete)?;
            show_funded(number, balance, &record.id, true)
        }
        IntentKind::EscrowRelease => Err(done_before(record, number, EscrowStatus::Released)),
        IntentKind::EscrowDispute => {
            let problem = done_before(record, number, EscrowStatus::Disputed);
            Err(problem.with("dispute_reason", record.note.as_deref()))
        }
        IntentKind::Spend | IntentKind::Transfer | IntentKind::Deposit => Err(incomplete()),
    }
}

/// Returns the escrow's status when the call was refused. Reasons that do not imply a status, such as the balance, only
/// occur for a pending escrow.
fn status_met(kind: IntentKind, reason: Reason) -> Option<EscrowStatus> {
    match kind {
        IntentKind::EscrowCreate => None,
        _ => EscrowStatus::from_reason(reason).or(Some(EscrowStatus::Pending)),
    }
}

fn done_before(record: &IntentRecord, number: u64, status: EscrowStatus) -> Problem {
    let problem = Problem::from(Code::EscrowResolved)
        .with("success", true)
        .with("escrowId", number)
        .with("status", status.as_str());
    with_intent(problem, &record.id).with("replayed", true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_to_refuse_a_call_on_an_escrow_has_its_code() {
        for (reason, expected) in [
            (Reason::EscrowNotPending, "ESCROW_WRONG_STATE"),
            (Reason::EscrowNotFunded, "ESCROW_WRONG_STATE"),
            (Reason::EscrowReleased, "ESCROW_RESOLVED"),
            (Reason::EscrowDisputed, "ESCROW_RESOLVED"),
            (Reason::EscrowRefunded, "ESCROW_RESOLVED"),
            (Reason::InsufficientBalance, "INSUFFICIENT_BALANCE"),
            (Reason::Frozen, "FROZEN"),
            (Reason::WalletClosed, "WALLET_CLOSED"),
        ] {
            assert_eq!(code(reason).as_str(), expected, "{reason:?}");
        }
    }
}
