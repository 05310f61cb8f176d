//! Twin of `deposit/confirm.lua`: confirms a pending deposit.

use super::{DepositKeys, words};
use crate::deposit::Deposit;
use crate::idempotency::RequestIdentity;
use crate::intent::NewIntent;
use crate::keys::agent_of_owner;
use crate::script::change::{AuditEvent, BUDGET, IDEMPOTENCY, KEPT_TEXT, MONEY, REFUSALS, Scope};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::transfer::record_args;
use crate::{Store, StoreError};
use clock::now_ms;
use domain::intent::IntentKind;
use serde_json::json;
use std::time::Duration;

script! {
    /// Credits a pending deposit to its wallet.
    pub static CONFIRM = "deposit_confirm",
    kind: Change,
    source: [BUDGET, KEPT_TEXT, MONEY, IDEMPOTENCY, REFUSALS, include_str!("../confirm.lua")],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    keys: DepositKeys,
    /// `amount` is nano-USD, `record_life` in ms.
    args: struct ConfirmArgs<'a>: &'a str {
        wallet_number, amount, transaction_text, record, record_life, fields[..]
    },
}

/// Outcome of a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DepositConfirmed {
    /// Confirmed, now or before.
    Done {
        /// As stored, confirmed.
        deposit: Deposit,
        /// True if the deposit was confirmed before.
        again: bool,
    },
    /// A request with this id was made before; its record contains the outcome.
    Known,
    /// The deposit does not exist.
    Missing,
    /// It was cancelled.
    Cancelled,
    /// Its wallet is closed.
    Closed,
    /// The balance would exceed [`BALANCE_MAX`](crate::wallet::BALANCE_MAX).
    TooMuch,
}

/// Arguments of a confirmation.
#[derive(Debug)]
pub struct DepositConfirmation<'a> {
    /// Identity of the request.
    pub identity: &'a RequestIdentity,
    /// Lifetime of the idempotency record; `None` for a request without a key, which leaves no record.
    pub record_life: Option<Duration>,
    /// Reference of the deposit.
    pub reference: &'a str,
    /// The request's other fields, as JSON.
    pub request: &'a str,
    /// Time of the request on this process's clock, in ms since 1970.
    pub at_ms: u64,
}

impl DepositConfirmation<'_> {
    /// Confirms the deposit.
    /// Safe to retry.
    pub async fn execute(&self, store: &Store, scope: &Scope<'_>) -> Result<DepositConfirmed, StoreError> {
        let realm = scope.realm();
        let Some(deposit) = Deposit::read(store, &realm, self.reference).await? else {
            return Ok(DepositConfirmed::Missing);
        };
        let mut reply = self.confirm(store, scope, &deposit).await?;
        let again = match reply.word()?.as_str() {
            "confirmed" => false,
            "again" => true,
            "known" => return Ok(DepositConfirmed::Known),
            "cancelled" => return Ok(DepositConfirmed::Cancelled),
            "closed" => return Ok(DepositConfirmed::Closed),
            "too_much" => return Ok(DepositConfirmed::TooMuch),
            _ => return reply.unexpected(),
        };
        match Deposit::read(store, &realm, self.reference).await? {
            Some(deposit) => Ok(DepositConfirmed::Done { deposit, again }),
            None => reply.unexpected(),
        }
    }

    async fn confirm(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        deposit: &Deposit,
    ) -> Result<ScriptReply, StoreError> {
        let owner = deposit.owner.as_str();
        let keys = DepositKeys::new(scope, owner, self.reference, self.identity);
        let record = NewIntent {
            kind: IntentKind::Deposit,
            fingerprint: &self.identity.fingerprint,
            amount: deposit.amount,
            currency: &deposit.currency,
            actor: scope.actor,
            agent: owner,
            at_ms: self.at_ms,
            note: None,
            request: self.request,
            transaction: Some(&deposit.id),
            escrow: None,
        };
        let fields = record.fields();
        let (number, amount) = (deposit.wallet.to_string(), deposit.amount.get().to_string());
        let words = words(&deposit.id, owner, &deposit.currency, self.reference);
        let (id, life) = record_args(self.identity, self.record_life);
        let args = ConfirmArgs {
            wallet_number: &number,
            amount: &amount,
            transaction_text: &words,
            record: id,
            record_life: &life,
            fields: fields.iter().map(String::as_str).collect(),
        };
        let data = json!({ "walletId": deposit.wallet, "owner": owner, "transactionId": deposit.id,
            "reference": self.reference, "amountNanos": amount, "amount": deposit.amount,
            "currency": deposit.currency });
        let event = AuditEvent::new("deposit.confirmed", data).with_agent(agent_of_owner(owner));
        scope.execute(store, &CONFIRM, event, keys, args).await
    }
}

/// Confirms the deposit with this reference for a caller without an idempotency key.
/// Safe to retry.
pub async fn confirm(
    store: &Store,
    scope: &Scope<'_>,
    reference: &str,
) -> Result<DepositConfirmed, StoreError> {
    let keyless = RequestIdentity {
        id: String::new(),
        spare_id: String::new(),
        fingerprint: String::new(),
    };
    let confirmation = DepositConfirmation {
        identity: &keyless,
        record_life: None,
        reference,
        request: "{}",
        at_ms: now_ms(),
    };
    confirmation.execute(store, scope).await
}
