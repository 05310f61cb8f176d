//! Twins of `escrow/*.lua`: create, fund, release and dispute an escrow, and end its dispute (specification "Escrow",
//! decisions D26 to D28).

mod create;
mod fund;
pub(crate) mod listing;
mod resolve;
mod transit_to_payee;
mod transition;

pub use create::{CREATE, CreatedEscrow, NewEscrow};
pub use fund::{FUND, fund};
pub use listing::LIST;
pub use resolve::{DisputeEnded, PartyDecision, Winner, decide, end_dispute};
pub use transition::RESOLVE;

use crate::escrow::{Escrow, EscrowStatus, Party};
use crate::idempotency::RequestIdentity;
use crate::intent::NewIntent;
use crate::script::change::{AuditEvent, BUDGET, INTENT, INTENT_BUDGET, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use clock::now_ms;
use domain::id::IdKind;
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;
use serde_json::{Value, json};

script! {
    /// Stores a refused intent, and nothing else.
    pub static BLOCKED = "intent_blocked",
    kind: Change,
    source: [BUDGET, INTENT, INTENT_BUDGET, include_str!("blocked.lua")],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    keys: struct BlockedKeys: String { intent, intent_index[6], claim },
    args: struct BlockedArgs<'a>: &'a str { intent, reason, heads, fingerprint, fields[..] },
}

script! {
    /// Claims a caller's idempotency key for a request that another account's bucket decides.
    pub static CLAIM = "intent_claim",
    kind: Timeless,
    source: [include_str!("claim.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct ClaimKeys<'a>: &'a str { intent },
    args: struct ClaimArgs<'a>: &'a str { intent, fingerprint },
}

/// The caller of an escrow operation and the identity of its request.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// Account, mode and API key of the caller.
    pub scope: Scope<'a>,
    /// Identity of the request.
    pub identity: &'a RequestIdentity,
    /// Time of the request, in ms since 1970.
    pub at_ms: u64,
}

impl<'a> Requester<'a> {
    /// Returns the intent of a request about `escrow` by `owner`, the owner of one of its wallets.
    fn intent(
        &self,
        kind: IntentKind,
        escrow: &'a Escrow,
        owner: &'a str,
        request: &'a str,
    ) -> NewIntent<'a> {
        NewIntent {
            kind,
            fingerprint: &self.identity.fingerprint,
            amount: escrow.amount,
            currency: &escrow.currency,
            actor: self.scope.actor,
            agent: owner,
            at_ms: self.at_ms,
            note: None,
            request,
            transaction: None,
            escrow: Some(escrow.number),
        }
    }
}

/// Outcome of a call on an escrow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CallOutcome<T> {
    /// Executed by this call.
    Done(T),
    /// Refused; an intent records it.
    Blocked(EscrowBlocked),
    /// The caller's idempotency key already has a record; nothing changed.
    Known,
    /// The receiving wallet's balance would exceed its maximum; nothing changed.
    TooMuch,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscrowBlocked {
    /// Id of the stored intent.
    pub intent: String,
    /// Why.
    pub reason: Reason,
    /// Status of the escrow at that time; `None` if it was not created.
    pub status: Option<EscrowStatus>,
}

/// Composes the details of an audit entry about an escrow. `number` is `None` before one is drawn.
fn audit_details(
    number: Option<u64>,
    (payer, payee): (&Party, &Party),
    (amount, currency): (Nanos, &str),
    intent: Option<&str>,
) -> Value {
    json!({ "escrowId": number, "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": amount,
        "amountNanos": amount.get().to_string(), "currency": currency, "intentId": intent })
}

/// Returns the [`audit_details`] of an existing escrow.
fn audit_details_of(escrow: &Escrow, intent: Option<&str>) -> Value {
    let parties = (&escrow.payer, &escrow.payee);
    audit_details(
        Some(escrow.number),
        parties,
        (escrow.amount, &escrow.currency),
        intent,
    )
}

/// Composes the request that the intent of an escrow call stores.
fn request_json(number: u64) -> String {
    json!({ "escrowId": number }).to_string()
}

/// Returns a new transaction id.
fn mint_transaction() -> Result<String, StoreError> {
    let id = IdKind::Transaction.mint(now_ms());
    id.map_err(StoreError::unexpected)
}

/// Claims the caller's key in the caller's account. Returns false if it has a record, or another request's claim.
async fn claim_key(store: &Store, requester: &Requester<'_>) -> Result<bool, StoreError> {
    let identity = requester.identity;
    let key = requester.scope.realm().intent(&identity.id);
    let keys = ClaimKeys { intent: &key };
    let args = ClaimArgs {
        intent: &identity.id,
        fingerprint: &identity.fingerprint,
    };
    let reply = store.reply(&CLAIM, keys, args).await?;
    reply.is("claimed", &["known"])
}

/// Stores `new` as refused, under the id of `refusal`, in the caller's account.
async fn store_blocked_intent<T>(
    store: &Store,
    requester: &Requester<'_>,
    new: &NewIntent<'_>,
    event: AuditEvent<'_>,
    refusal: EscrowBlocked,
) -> Result<CallOutcome<T>, StoreError> {
    let realm = requester.scope.realm();
    let keys = BlockedKeys {
        intent: realm.intent(&refusal.intent),
        intent_index: new.lists().keys(&realm),
        claim: realm.intent(&requester.identity.id),
    };
    let (heads, fields) = (new.heads(false, &[refusal.reason]), new.fields());
    let args = BlockedArgs {
        intent: &refusal.intent,
        reason: refusal.reason.as_str(),
        heads: &heads,
        fingerprint: new.fingerprint,
        fields: fields.iter().map(String::as_str).collect(),
    };
    let mut reply = requester
        .scope
        .execute(store, &BLOCKED, event, keys, args)
        .await?;
    match reply.word()?.as_str() {
        "blocked" => Ok(CallOutcome::Blocked(refusal)),
        "known" => Ok(CallOutcome::Known),
        _ => reply.unexpected(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_a_call_names_its_escrow() {
        assert_eq!(request_json(7), r#"{"escrowId":7}"#);
    }
}
