//! Twins of `transfer/*.lua`: transfers between two wallets, of the same or of different accounts (decisions D18, D28).

use crate::idempotency::RequestIdentity;
use crate::intent::NewIntent;
use crate::script::change::{
    AuditEvent, BUDGET, CAUSED, IDEMPOTENCY, KEPT_TEXT, LOW_BALANCE, MONEY, REFUSALS, Scope,
};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::transaction::{NewTransaction, TransactionText, TransactionType};
use crate::transit::{Credit, TRANSFER_RECEIVED, Transit};
use crate::wallet::WalletPlace;
use crate::{Store, StoreError, audit};
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;
use serde_json::{Value, json};
use std::time::Duration;

const CHECKS: &str = include_str!("transfer/checks.lua");

script! {
    /// Within one account.
    pub static OWN = "transfer_own",
    kind: Change,
    source: [
        BUDGET, CAUSED, KEPT_TEXT, MONEY, IDEMPOTENCY, REFUSALS, LOW_BALANCE, CHECKS, include_str!("transfer/own.lua"),
    ],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    keys: struct OwnKeys: String { transactions, payer[4], record, receiver[4] },
    /// `amount` is nano-USD, `record_life` in ms.
    args: struct OwnArgs<'a>: &'a str {
        payer_number, amount, transaction_text, refusal, record, record_life, receiver_number, receiver_text, fields[..]
    },
}

script! {
    /// To another account.
    pub static OUT = "transfer_out",
    kind: Change,
    source: [
        BUDGET, CAUSED, KEPT_TEXT, MONEY, IDEMPOTENCY, REFUSALS, LOW_BALANCE, CHECKS, include_str!("transfer/out.lua"),
    ],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    keys: struct OutKeys: String { transactions, payer[4], record, transit },
    /// `amount` is nano-USD, `record_life` in ms.
    args: struct OutArgs<'a>: &'a str {
        payer_number, amount, transaction_text, refusal, record, record_life, transit, transit_row, fields[..]
    },
}

/// Actor in the receiver's audit log for money from another account.
const ANOTHER_ACCOUNT: &str = "another account";

/// Arguments of a transfer.
#[derive(Debug)]
pub struct NewTransfer<'a> {
    /// Identity of the request.
    pub identity: &'a RequestIdentity,
    /// Lifetime of the idempotency record; `None` for a request without a key, which leaves no record.
    pub record_life: Option<Duration>,
    /// Paying wallet; its account and mode are those of the scope.
    pub from: &'a WalletPlace,
    /// Receiving wallet.
    pub to: &'a WalletPlace,
    /// Debited at once, credited on arrival.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// The caller's memo.
    pub memo: Option<&'a str>,
    /// Id of the sender's transaction, which identifies the transfer.
    pub transaction: &'a str,
    /// Id of the receiver's transaction.
    pub arrival: &'a str,
    /// True if a wallet was read as closed, which is final; the transfer is then refused.
    pub closed: bool,
    /// The request's other fields, as JSON.
    pub request: &'a str,
    /// Time of the request on this process's clock, in ms since 1970.
    pub at_ms: u64,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transferred {
    /// The payer is debited; the receiver is credited, or the money is in transit.
    Done {
        /// Balance of the payer afterwards.
        balance: Nanos,
        /// In ms since 1970, on the store's clock.
        at_ms: u64,
    },
    /// Refused; the record contains the refusal.
    Blocked(Reason),
    /// A request with this id was made before; its record contains the outcome.
    Known,
    /// The payer's balance is too low.
    Insufficient,
    /// The receiver cannot hold that much.
    TooMuch,
    /// A wallet differs from the one that was read. Read it again.
    Changed,
}

impl NewTransfer<'_> {
    /// Executes the transfer. Money for another account is delivered immediately; if that fails, the transit worker
    /// delivers it.
    ///
    /// # Errors
    /// [`StoreError`]; if the script may have run, a retry of the request returns the outcome.
    pub async fn execute(&self, store: &Store, scope: &Scope<'_>) -> Result<Transferred, StoreError> {
        if self.from.account == self.to.account {
            return self.own(store, scope).await;
        }
        let (transferred, transit) = self.send(store, scope).await?;
        if matches!(transferred, Transferred::Done { .. })
            && let Err(error) = crate::transit::script::deliver(store, &transit).await
        {
            tracing::warn!(transit = transit.id, %error, "a transfer is still in transit; the worker delivers it");
        }
        Ok(transferred)
    }

    async fn own(&self, store: &Store, scope: &Scope<'_>) -> Result<Transferred, StoreError> {
        let to = self.to.number.to_string();
        let arrival = NewTransaction {
            id: self.arrival,
            kind: TransactionType::TransferIn,
            owner: &self.to.owner,
            intent: None,
            currency: self.currency,
            tail: self.tail(self.from),
        };
        let realm = scope.realm();
        let keys = OwnKeys {
            transactions: realm.transactions(),
            payer: self.payer(scope),
            record: realm.intent(&self.identity.id),
            receiver: realm.leg(&self.to.owner, TransactionType::TransferIn.as_str()),
        };
        let paid = self.payment(scope);
        let args = OwnArgs {
            payer_number: &paid.payer_number,
            amount: &paid.amount,
            transaction_text: &paid.transaction_text,
            refusal: paid.refusal,
            record: paid.record,
            record_life: &paid.record_life,
            receiver_number: &to,
            receiver_text: &arrival.words(),
            fields: paid.fields(),
        };
        let reply = scope.execute(store, &OWN, self.event(), keys, args).await?;
        transferred(reply)
    }

    /// Executes the first of two steps to another account: the money is debited and in transit.
    async fn send(&self, store: &Store, scope: &Scope<'_>) -> Result<(Transferred, Transit), StoreError> {
        let data = self.audit_data(self.arrival);
        let transit = Transit {
            id: self.transaction.to_owned(),
            from_account: self.from.account.clone(),
            to_account: self.to.account.clone(),
            mode: scope.mode.as_str().to_owned(),
            to_owner: self.to.owner.clone(),
            to_wallet: self.to.number,
            credit: Some(Credit {
                nanos: self.amount.get(),
                kind: TransactionType::TransferIn.as_str().to_owned(),
                transaction: self.arrival.to_owned(),
                counterparty: self.from.number.to_string(),
                currency: self.currency.to_owned(),
                memo: self.memo.map(str::to_owned),
            }),
            escrow: None,
            intent: None,
            audit: Some(audit::entry(
                TRANSFER_RECEIVED,
                self.to.agent(),
                ANOTHER_ACCOUNT,
                &data,
            )),
            lists: None,
        };
        let row = serde_json::to_string(&transit);
        let row = row.map_err(StoreError::unexpected)?;
        let realm = scope.realm();
        let keys = OutKeys {
            transactions: realm.transactions(),
            payer: self.payer(scope),
            record: realm.intent(&self.identity.id),
            transit: realm.bucket().transit(),
        };
        let paid = self.payment(scope);
        let args = OutArgs {
            payer_number: &paid.payer_number,
            amount: &paid.amount,
            transaction_text: &paid.transaction_text,
            refusal: paid.refusal,
            record: paid.record,
            record_life: &paid.record_life,
            transit: &transit.id,
            transit_row: &row,
            fields: paid.fields(),
        };
        let reply = scope.execute(store, &OUT, self.event(), keys, args).await?;
        Ok((transferred(reply)?, transit))
    }

    /// Returns the keys of the debit.
    fn payer(&self, scope: &Scope<'_>) -> [String; 4] {
        let kind = TransactionType::TransferOut.as_str();
        scope.realm().leg(&self.from.owner, kind)
    }

    /// Returns the arguments that both scripts take.
    fn payment(&self, scope: &Scope<'_>) -> Payment<'_> {
        let transaction = NewTransaction {
            id: self.transaction,
            kind: TransactionType::TransferOut,
            owner: &self.from.owner,
            intent: None,
            currency: self.currency,
            tail: self.tail(self.to),
        };
        let (record, record_life) = record_args(self.identity, self.record_life);
        Payment {
            payer_number: self.from.number.to_string(),
            amount: self.amount.get().to_string(),
            transaction_text: transaction.words(),
            refusal: if self.closed {
                Reason::WalletClosed.as_str()
            } else {
                ""
            },
            record,
            record_life,
            fields: self.record(scope).fields(),
        }
    }

    /// Returns the text part of a transaction with the counterparty `other`.
    fn tail(&self, other: &WalletPlace) -> TransactionText {
        TransactionText {
            counterparty: Some(other.number.to_string()),
            memo: self.memo.map(str::to_owned),
        }
    }

    fn event(&self) -> AuditEvent<'_> {
        AuditEvent::new("transfer.requested", self.audit_data(self.transaction)).with_agent(self.from.agent())
    }

    /// Composes the audit details of one side, with its own transaction.
    fn audit_data(&self, transaction: &str) -> Value {
        json!({ "from": self.from.number, "to": self.to.number, "transactionId": transaction,
            "amountNanos": self.amount.get().to_string(), "amount": self.amount, "currency": self.currency,
            "memo": self.memo })
    }

    fn record<'a>(&'a self, scope: &'a Scope<'_>) -> NewIntent<'a> {
        NewIntent {
            kind: IntentKind::Transfer,
            fingerprint: &self.identity.fingerprint,
            amount: self.amount,
            currency: self.currency,
            actor: scope.actor,
            agent: &self.from.owner,
            at_ms: self.at_ms,
            note: self.memo,
            request: self.request,
            transaction: Some(self.transaction),
            escrow: None,
        }
    }
}

/// Arguments that both scripts need.
struct Payment<'a> {
    payer_number: String,
    amount: String,
    transaction_text: String,
    refusal: &'static str,
    record: &'a str,
    record_life: String,
    fields: Vec<String>,
}

impl Payment<'_> {
    fn fields(&self) -> Vec<&str> {
        self.fields.iter().map(String::as_str).collect()
    }
}

/// Reads the reply of either script.
fn transferred(mut reply: ScriptReply) -> Result<Transferred, StoreError> {
    match reply.word()?.as_str() {
        "done" => Ok(Transferred::Done {
            balance: reply.nanos()?,
            at_ms: reply.number()?,
        }),
        "blocked" => reply.parsed(Reason::parse).map(Transferred::Blocked),
        "known" => Ok(Transferred::Known),
        "insufficient" => Ok(Transferred::Insufficient),
        "too_much" => Ok(Transferred::TooMuch),
        "changed" => Ok(Transferred::Changed),
        _ => reply.unexpected(),
    }
}

/// Returns id and lifetime of a record as `idempotency.lua` takes them.
pub(crate) fn record_args(identity: &RequestIdentity, life: Option<Duration>) -> (&str, String) {
    match life {
        None => ("", String::new()),
        Some(life) => (&identity.id, life.as_millis().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_reply_is_read() {
        let read = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            transferred(ScriptReply::new(&OWN, words)).ok()
        };
        let done = Transferred::Done {
            balance: Nanos::from_stored(5),
            at_ms: 7,
        };
        for (words, outcome) in [
            (&["done", "5", "7"][..], done),
            (&["blocked", "frozen"], Transferred::Blocked(Reason::Frozen)),
            (&["known"], Transferred::Known),
            (&["insufficient"], Transferred::Insufficient),
            (&["too_much"], Transferred::TooMuch),
            (&["changed"], Transferred::Changed),
        ] {
            assert_eq!(read(words), Some(outcome), "{words:?}");
        }
        assert_eq!(read(&["another"]), None);
        assert_eq!(read(&["done", "5"]), None);
    }
}
