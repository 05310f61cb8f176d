//! Ends an escrow: a party releases or disputes it, or the operator ends the dispute. The payer's account determines
//! which request is first; a payee in another account receives the outcome by transit (decision D28).

use super::transit_to_payee::{
    RESOLVED, TransitToPayee, deliver_earlier_decision, deliver_now, has_payee_room,
};
use super::transition::{EscrowTransition, Transitioned};
use super::{
    CallOutcome, EscrowBlocked, RESOLVE, Requester, audit_details_of, claim_key, mint_transaction,
    request_json, store_blocked_intent,
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
    decision: PartyDecision<'_>,
) -> Result<CallOutcome<()>, StoreError> {
    let by_remote_payee = requester.scope.account != escrow.payer.account;
    // Before the claim, since a refusal leaves no record.
    if !release_fits(store, escrow, decision, by_remote_payee).await? {
        return Ok(CallOutcome::TooMuch);
    }
    if by_remote_payee && !claim_key(store, requester).await? {
        return Ok(CallOutcome::Known);
    }
    let transaction = mint_transaction()?;
    let request = request_json(escrow.number);
    let (party, actor) = match by_remote_payee {
        true => (&escrow.payee, PAYEE),
        false => (&escrow.payer, requester.scope.actor),
    };
    let intent = NewIntent {
        note: decision.note(),
        // An addition of the script in the payer's account.
        transaction: (by_remote_payee && decision.pays()).then_some(&transaction),
        ..requester.intent(decision.kind(), escrow, &party.owner, &request)
    };
    let transit = transit_of_decision(requester, escrow, decision, &transaction, &intent);
    let transition = EscrowTransition {
        escrow,
        actor,
        audit: decision.audit(),
        required: EscrowStatus::Funded,
        becomes: decision.becomes(),
        credit: (decision.pays() && !escrow.crosses_accounts())
            .then_some((&escrow.payee, TransactionType::EscrowRelease)),
        transaction: &transaction,
        note: decision.note(),
        transit: transit.as_ref(),
        request: Some((requester, &intent)),
    };
    let outcome = transition.execute(store).await?;
    if let Transitioned::DecidedBefore(_) = outcome {
        // The intent exists then, unless it is archived: that freed the key for this request, which is refused.
        deliver_earlier_decision(store, escrow).await?;
    }
    match outcome {
        Transitioned::Won => match deliver_now(store, transit.as_ref()).await {
            Err(error) if by_remote_payee => Err(error),
            _ => Ok(CallOutcome::Done(())),
        },
        Transitioned::DecidedBefore(refusal) | Transitioned::Refused(refusal) if by_remote_payee => {
            store_payee_refusal(store, requester, escrow, intent, (decision, refusal)).await
        }
        Transitioned::Refused(refusal) => Ok(CallOutcome::Blocked(refusal)),
        Transitioned::Known => Ok(CallOutcome::Known),
        Transitioned::TooMuch => Ok(CallOutcome::TooMuch),
        Transitioned::DecidedBefore(_) | Transitioned::WrongState(_) => unexpected_reply(&RESOLVE),
    }
}

/// Returns the consequences for the payee's account, if it is not the payer's: the money of a release, and the intent
/// of a payee that decides.
fn transit_of_decision(
    requester: &Requester<'_>,
    escrow: &Escrow,
    decision: PartyDecision<'_>,
    transaction: &String,
    intent: &NewIntent<'_>,
) -> Option<Transit> {
    let by_remote_payee = requester.scope.account != escrow.payer.account;
    let transit_to_payee = TransitToPayee {
        escrow,
        name: decision.becomes().as_str(),
        becomes: decision.becomes(),
        actor: if by_remote_payee {
            requester.scope.actor
        } else {
            PAYER
        },
        credit: decision.pays().then_some(transaction),
        intent: by_remote_payee.then_some((requester, intent)),
    };
    escrow.crosses_accounts().then(|| transit_to_payee.to_transit())
}

/// Returns whether a decision leaves the balance of a payee's wallet in another account within its maximum. True of an
/// escrow that is no longer funded, which is refused for that reason.
async fn release_fits(
    store: &Store,
    escrow: &Escrow,
    decision: PartyDecision<'_>,
    by_remote_payee: bool,
) -> Result<bool, StoreError> {
    let is_funded = escrow.status == EscrowStatus::Funded;
    if !decision.pays() || !is_funded || !escrow.crosses_accounts() {
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

/// Stores the intent of a payee in another account that was refused, without a transaction.
async fn store_payee_refusal(
    store: &Store,
    requester: &Requester<'_>,
    escrow: &Escrow,
    intent: NewIntent<'_>,
    (decision, refusal): (PartyDecision<'_>, EscrowBlocked),
) -> Result<CallOutcome<()>, StoreError> {
    let event = AuditEvent::new(decision.audit(), audit_details_of(escrow, Some(&refusal.intent)))
        .with_agent(escrow.payee.agent());
    let intent = NewIntent {
        transaction: None,
        ..intent
    };
    store_blocked_intent(store, requester, &intent, event, refusal).await
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
        let transit_to_payee = TransitToPayee {
            escrow,
            name: RESOLVED,
            becomes,
            actor: OPERATOR,
            credit: (!here).then_some(&transaction),
            intent: None,
        };
        transit_to_payee.to_transit()
    });
    let transition = EscrowTransition {
        escrow,
        actor: OPERATOR,
        audit: "escrow.resolve",
        required: EscrowStatus::Disputed,
        becomes,
        credit: here.then_some((party, kind)),
        transaction: &transaction,
        note: None,
        transit: transit.as_ref(),
        request: None,
    };
    match transition.execute(store).await? {
        Transitioned::Won => {
            // The transit worker retries a failed delivery.
            let _logged = deliver_now(store, transit.as_ref()).await;
            Ok(DisputeEnded::Done(becomes))
        }
        Transitioned::WrongState(status) => Ok(DisputeEnded::WrongState(status)),
        Transitioned::TooMuch => Ok(DisputeEnded::TooMuch),
        Transitioned::DecidedBefore(_) | Transitioned::Known | Transitioned::Refused(_) => {
            unexpected_reply(&RESOLVE)
        }
    }
}
