//! Twin of `deposit/cancel.lua`: takes a pending deposit back.

use crate::deposit::Deposit;
use crate::keys::agent_of_owner;
use crate::script::change::{AuditEvent, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use serde_json::json;

script! {
    /// Cancels a pending deposit.
    pub static CANCEL = "deposit_cancel",
    kind: Change,
    source: [include_str!("../cancel.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct CancelKeys: String { wallet, deposit },
    /// `amount` is nano-USD.
    args: struct CancelArgs<'a>: &'a str { wallet_number, amount },
}

/// Outcome of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// Cancelled, now or before.
    Done {
        /// As stored, cancelled.
        deposit: Deposit,
        /// True if it was cancelled before.
        again: bool,
    },
    /// The deposit does not exist.
    Missing,
    /// Its money is in the wallet.
    Confirmed,
}

/// Cancels the pending deposit with this reference.
/// Safe to retry.
pub async fn cancel(store: &Store, scope: &Scope<'_>, reference: &str) -> Result<Cancelled, StoreError> {
    let realm = scope.realm();
    let Some(deposit) = Deposit::read(store, &realm, reference).await? else {
        return Ok(Cancelled::Missing);
    };
    let owner = deposit.owner.as_str();
    let keys = CancelKeys {
        wallet: realm.wallet(owner),
        deposit: realm.deposit(reference),
    };
    let (number, amount) = (deposit.wallet.to_string(), deposit.amount.get().to_string());
    let args = CancelArgs {
        wallet_number: &number,
        amount: &amount,
    };
    let data = json!({ "walletId": deposit.wallet, "owner": owner, "transactionId": deposit.id,
        "reference": reference, "amountNanos": amount, "amount": deposit.amount,
        "currency": deposit.currency });
    let event = AuditEvent::new("deposit.cancelled", data).with_agent(agent_of_owner(owner));
    let mut reply = scope.execute(store, &CANCEL, event, keys, args).await?;
    let again = match reply.word()?.as_str() {
        "cancelled" => false,
        "again" => true,
        "confirmed" => return Ok(Cancelled::Confirmed),
        "missing" => return Ok(Cancelled::Missing),
        _ => return reply.unexpected(),
    };
    match Deposit::read(store, &realm, reference).await? {
        Some(deposit) => Ok(Cancelled::Done { deposit, again }),
        None => reply.unexpected(),
    }
}
