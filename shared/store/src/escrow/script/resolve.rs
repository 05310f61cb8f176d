//! Ends an escrow: a party releases or disputes it, or the operator ends the dispute. The payer's account determines
//! which request is first; a payee in another account receives the outcome by transit (decision D28).

use super::outbound_transfer::{OutboundTransfer, RESOLVED, deliver_now, deliver_pending, has_payee_room};
use super::step::{EscrowStep, Stepped};
use super::{
    CallOutcome, EscrowBlocked, RESOLVE, Requester, claim, facts_of, keep_blocked, mint_transaction,
    request_of,
};
use crate::audit::OPERATOR;
use crate::escrow::{Escrow, EscrowStatus};
use crate::intent::NewIntent;
use crate::script::change::{AuditEvent, unexpected_reply};
use crate::transaction::TransactionType;
use crate::transit::Transit;
use crate::wallet::{BALANCE_BY_OTHERS_MAX, BALANCE_MAX};
use crate::{Store, StoreError};
use domain::intent::IntentKind;

/// Actor in the other party's audit log if a party of another account acts.
const PAYER: &str = "payer";
/// See [`PAYER`].
const PAYEE: &str = "payee";

/// Decision of a party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartyDecision<'a> {
    /// Pay the payee.
    Release,
    /// Dispute, with an optional reason; the money stays.
    Dispute(Option<&'a str>),
}

/// Recipient of a disputed escrow's money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Winner {
    /// Refund the payer.
    Payer,
    /// Pay the payee.
    Payee,
}

/// Outcome of ending a dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum DisputeEnded {
    /// The escrow has this final status.
    Done(EscrowStatus),
    /// The escrow is not disputed; nothing changed.
    WrongState(EscrowStatus),
    /// The receiving wallet's balance would exceed its maximum; nothing changed.
    TooMuch,
}

impl<'a> PartyDecision<'a> {
    const fn kind(self) -> IntentKind {
        match self {
            Self::Release => IntentKind::EscrowRelease,
            Self::Dispute(_) => IntentKind::EscrowDispute,
        }
    }

    const fn note(self) -> Option<&'a str> {
        match self {
            Self::Release => None,
            Self::Dispute(note) => note,
        }
    }

    /// Returns the audit details, to which the script adds the outcome.
    const fn audit(self) -> &'static str {
        match self {
            Self::Release => "escrow.release",
            Self::Dispute(_) => "escrow.dispute",
        }
    }

    /// Returns whether the escrow's money goes to the payee.
    const fn pays(self) -> bool {
        matches!(self, Self::Release)
    }

    const fn becomes(self) -> EscrowStatus {
        match self {
            Self::Release => EscrowStatus::Released,
            Self::Dispute(_) => EscrowStatus::Disputed,
        }
    }
}

/// Releases or disputes a funded escrow for the calling party. If the payee is in another account, the decision is
/// delivered there before this returns, with the payee's own intent. So is its money, unless its wallet has filled up
/// since it was checked: then the money stays in transit.
///
/// # Errors
/// [`StoreError`]; safe to retry with the same key. If the script may have run, the escrow may be resolved.
pub async fn decide(
    store: &Store,
    requester: &Requester<'_>,
    escrow: &Escrow,
    verdict: PartyDecision<'_>,
) -> Result<CallOutcome<()>, StoreError> {
    let by_remote_payee = requester.scope.account != escrow.payer.account;
    // Before the claim, since a refusal leaves no record.
    if !has_room(store, escrow, verdict, by_remote_payee).await? {
        return Ok(CallOutcome::TooMuch);
    }
    if by_remote_payee && !claim(store, requester).await? {
        return Ok(CallOutcome::Known);
    }
    let transaction = mint_transaction()?;
    let request = request_of(escrow.number);
    let (party, actor) = match by_remote_payee {
        true => (&escrow.payee, PAYEE),
        false => (&escrow.payer, requester.scope.actor),
    };
    let intent = NewIntent {
        note: verdict.note(),
        // An addition of the script in the payer's account.
        transaction: (by_remote_payee && verdict.pays()).then_some(&transaction),
        ..requester.intent(verdict.kind(), escrow, &party.owner, &request)
    };
    let transit = transit_of_decision(requester, escrow, verdict, &transaction, &intent);
    let step = EscrowStep {
        escrow,
        actor,
        audit: verdict.audit(),
        needs: EscrowStatus::Funded,
        becomes: verdict.becomes(),
        credit: (verdict.pays() && !escrow.crosses_accounts())
            .then_some((&escrow.payee, TransactionType::EscrowRelease)),
        transaction: &transaction,
        note: verdict.note(),
        transit: transit.as_ref(),
        request: Some((requester, &intent)),
    };
    let stepped = step.take(store).await?;
    if let Stepped::Again(_) = stepped {
        // The intent exists then, unless it is archived: that freed the key for this request, which is refused.
        deliver_pending(store, escrow).await?;
    }
    match stepped {
        Stepped::Won => match deliver_now(store, transit.as_ref()).await {
            Err(error) if by_remote_payee => Err(error),
            _ => Ok(CallOutcome::Done(())),
        },
        Stepped::Again(refusal) | Stepped::Refused(refusal) if by_remote_payee => {
            keep_refused(store, requester, escrow, intent, (verdict, refusal)).await
        }
        Stepped::Refused(refusal) => Ok(CallOutcome::Blocked(refusal)),
        Stepped::Known => Ok(CallOutcome::Known),
        Stepped::TooMuch => Ok(CallOutcome::TooMuch),
        Stepped::Again(_) | Stepped::WrongState(_) => unexpected_reply(&RESOLVE),
    }
}

/// Returns what a payee's account receives of the decision, if it is not the payer's: the money of a release, and the
/// intent of a payee that decides.
fn transit_of_decision(
    requester: &Requester<'_>,
    escrow: &Escrow,
    verdict: PartyDecision<'_>,
    transaction: &String,
    intent: &NewIntent<'_>,
) -> Option<Transit> {
    let by_remote_payee = requester.scope.account != escrow.payer.account;
    let outbound_transfer = OutboundTransfer {
        escrow,
        name: verdict.becomes().as_str(),
        becomes: verdict.becomes(),
        actor: if by_remote_payee {
            requester.scope.actor
        } else {
            PAYER
        },
        credit: verdict.pays().then_some(transaction),
        intent: by_remote_payee.then_some((requester, intent)),
    };
    escrow.crosses_accounts().then(|| outbound_transfer.transit())
}

/// Returns whether the payee's wallet in another account has room for the money that is released. True of an escrow
/// that is no longer funded, which is refused for that reason.
async fn has_room(
    store: &Store,
    escrow: &Escrow,
    verdict: PartyDecision<'_>,
    by_remote_payee: bool,
) -> Result<bool, StoreError> {
    let is_funded = escrow.status == EscrowStatus::Funded;
    if !verdict.pays() || !is_funded || !escrow.crosses_accounts() {
        return Ok(true);
    }
    // A payee that releases fills its own wallet.
    let most = if by_remote_payee {
        BALANCE_MAX
    } else {
        BALANCE_BY_OTHERS_MAX
    };
    has_payee_room(store, escrow, most).await
}

/// Stores the refused intent of a payee in its own account, without a transaction.
async fn keep_refused(
    store: &Store,
    requester: &Requester<'_>,
    escrow: &Escrow,
    intent: NewIntent<'_>,
    (verdict, refusal): (PartyDecision<'_>, EscrowBlocked),
) -> Result<CallOutcome<()>, StoreError> {
    let event = AuditEvent::new(verdict.audit(), facts_of(escrow, Some(&refusal.intent)))
        .with_agent(escrow.payee.agent());
    let intent = NewIntent {
        transaction: None,
        ..intent
    };
    keep_blocked(store, requester, &intent, event, refusal).await
}

/// Ends the dispute of an escrow as the operator decided.
///
/// # Errors
/// [`StoreError`]; read the escrow before a retry: the dispute may have ended.
pub async fn end_dispute(store: &Store, escrow: &Escrow, winner: Winner) -> Result<DisputeEnded, StoreError> {
    let (becomes, kind, party) = match winner {
        Winner::Payer => (
            EscrowStatus::Refunded,
            TransactionType::EscrowRefund,
            &escrow.payer,
        ),
        Winner::Payee => (
            EscrowStatus::Released,
            TransactionType::EscrowRelease,
            &escrow.payee,
        ),
    };
    let here = party.account == escrow.payer.account;
    let is_disputed = escrow.status == EscrowStatus::Disputed;
    if is_disputed && !here && !has_payee_room(store, escrow, BALANCE_MAX).await? {
        return Ok(DisputeEnded::TooMuch);
    }
    let transaction = mint_transaction()?;
    let transit = escrow.crosses_accounts().then(|| {
        let outbound_transfer = OutboundTransfer {
            escrow,
            name: RESOLVED,
            becomes,
            actor: OPERATOR,
            credit: (!here).then_some(&transaction),
            intent: None,
        };
        outbound_transfer.transit()
    });
    let step = EscrowStep {
        escrow,
        actor: OPERATOR,
        audit: "escrow.resolve",
        needs: EscrowStatus::Disputed,
        becomes,
        credit: here.then_some((party, kind)),
        transaction: &transaction,
        note: None,
        transit: transit.as_ref(),
        request: None,
    };
    match step.take(store).await? {
        Stepped::Won => {
            // The transit worker retries a failed delivery.
            let _logged = deliver_now(store, transit.as_ref()).await;
            Ok(DisputeEnded::Done(becomes))
        }
        Stepped::WrongState(status) => Ok(DisputeEnded::WrongState(status)),
        Stepped::TooMuch => Ok(DisputeEnded::TooMuch),
        Stepped::Again(_) | Stepped::Known | Stepped::Refused(_) => unexpected_reply(&RESOLVE),
    }
}
