//! Twins of `transfer/*.lua`: transfers between two wallets, of one account or of two (decisions D18, D28).

use crate::intent::NewIntent;
use crate::once::Once;
use crate::script::change::{
    BUDGET, CHANGE, Event, LOW_BALANCE, MONEY, ONCE, REFUSALS, Scope, unexpected_reply,
};
use crate::script::{Script, WhenFull};
use crate::transaction::{NewTransaction, Tail, TransactionType};
use crate::transit::{Credit, Transit};
use crate::wallet::WalletPlace;
use crate::{Store, StoreError, audit};
use domain::intent::{Kind, Reason};
use domain::money::Nanos;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

/// Within one account.
pub static OWN: LazyLock<Script> = LazyLock::new(|| script("transfer_own", include_str!("transfer/own.lua")));

/// To another account.
pub static OUT: LazyLock<Script> = LazyLock::new(|| script("transfer_out", include_str!("transfer/out.lua")));

fn script(name: &'static str, text: &str) -> Script {
    let checks = include_str!("transfer/checks.lua");
    let parts = [CHANGE, BUDGET, MONEY, ONCE, REFUSALS, LOW_BALANCE, checks, text];
    Script::new(name, WhenFull::Refuse, &parts)
        .of_money()
        .with_budgets()
}

/// Actor in the receiver's audit log for money from another account.
const ANOTHER_ACCOUNT: &str = "another account";

/// Arguments of a transfer.
#[derive(Debug)]
pub struct NewTransfer<'a> {
    /// Identity of the request.
    pub once: &'a Once,
    /// Lifetime of the idempotency record; `None` for a request without a key, which leaves no record.
    pub record_life: Option<Duration>,
    /// Paying wallet; its account and mode are those of the scope.
    pub from: &'a WalletPlace,
    /// Receiving wallet.
    pub to: &'a WalletPlace,
    /// Amount.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// The caller's memo.
    pub memo: Option<&'a str>,
    /// Id of the sender's transaction, which names the transfer.
    pub transaction: &'a str,
    /// Id of the receiver's transaction.
    pub arrival: &'a str,
    /// Whether a wallet was read as closed, which is final: then the transfer is refused.
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
        /// Balance of the payer after it.
        balance: Nanos,
        /// In ms since 1970, on the store's clock.
        at_ms: u64,
    },
    /// Refused; the record says so.
    Blocked(Reason),
    /// A request with this id was made before; its record has the outcome.
    Known,
    /// The payer's balance does not cover it.
    Insufficient,
    /// The receiver cannot hold that much.
    TooMuch,
    /// A wallet differs from the one that was read. Read it again.
    Changed,
}

impl NewTransfer<'_> {
    /// Executes the transfer. A transfer to another account is delivered inline; if that fails, the transit worker
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
        let leg = scope
            .keys()
            .leg(scope.mode, &self.to.owner, TransactionType::TransferIn.as_str());
        self.pay(store, scope, (&OWN, &leg, [&to, &arrival.words()]))
            .await
    }

    /// Executes the first of two steps to another account: the money is debited and in transit. Public for tests of a
    /// crash between the steps; [`NewTransfer::execute`] takes both.
    ///
    /// # Errors
    /// As [`NewTransfer::execute`].
    pub async fn send(&self, store: &Store, scope: &Scope<'_>) -> Result<(Transferred, Transit), StoreError> {
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
                "transfer.received",
                self.to.agent(),
                ANOTHER_ACCOUNT,
                &data,
            )),
            lists: None,
        };
        let row = serde_json::to_string(&transit);
        let row = row.map_err(|error| StoreError::UnexpectedReply(error.to_string()))?;
        let rows = [scope.keys().bucket().transit()];
        let sent = self.pay(store, scope, (&OUT, &rows, [&transit.id, &row])).await?;
        Ok((sent, transit))
    }

    /// Executes one of the two scripts, with its own keys and two arguments.
    async fn pay(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        (script, more_keys, more_args): (&Script, &[String], [&str; 2]),
    ) -> Result<Transferred, StoreError> {
        let account = scope.keys();
        let kind = TransactionType::TransferOut;
        let mut keys = vec![account.transactions(scope.mode)];
        keys.extend(account.leg(scope.mode, &self.from.owner, kind.as_str()));
        keys.push(account.intent(scope.mode, &self.once.id));
        keys.extend(more_keys.iter().cloned());
        let words = NewTransaction {
            id: self.transaction,
            kind,
            owner: &self.from.owner,
            intent: None,
            currency: self.currency,
            tail: self.tail(self.to),
        }
        .words();
        let (number, amount) = (self.from.number.to_string(), self.amount.get().to_string());
        let (id, life) = record_args(self.once, self.record_life);
        let fields = self.record(scope).fields();
        let refused = if self.closed {
            Reason::WalletClosed.as_str()
        } else {
            ""
        };
        let mut args = vec![number.as_str(), &amount, &words, refused, id, &life];
        args.extend(more_args);
        args.extend(fields.iter().map(String::as_str));
        let reply = scope.execute(store, script, self.event(), &keys, &args).await?;
        let words: Vec<&str> = reply.iter().map(String::as_str).collect();
        transferred(&words).map_or_else(|| unexpected_reply(script), Ok)
    }

    /// Returns the text part of a transaction with the counterparty `other`.
    fn tail(&self, other: &WalletPlace) -> Tail {
        Tail {
            counterparty: Some(other.number.to_string()),
            memo: self.memo.map(str::to_owned),
        }
    }

    fn event(&self) -> Event<'_> {
        Event {
            kind: "transfer.requested",
            agent: self.from.agent(),
            data: self.audit_data(self.transaction),
        }
    }

    /// Composes the audit details of one side, with its own transaction.
    fn audit_data(&self, transaction: &str) -> Value {
        json!({ "from": self.from.number, "to": self.to.number, "transactionId": transaction,
            "amountNanos": self.amount.get().to_string(), "amount": self.amount, "currency": self.currency,
            "memo": self.memo })
    }

    fn record<'a>(&'a self, scope: &'a Scope<'_>) -> NewIntent<'a> {
        NewIntent {
            kind: Kind::Transfer,
            fingerprint: &self.once.fingerprint,
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

fn transferred(words: &[&str]) -> Option<Transferred> {
    Some(match words {
        ["done", balance, at_ms] => Transferred::Done {
            balance: Nanos::from_stored(balance.parse().ok()?),
            at_ms: at_ms.parse().ok()?,
        },
        ["blocked", reason] => Transferred::Blocked(Reason::parse(reason)?),
        ["known"] => Transferred::Known,
        ["insufficient"] => Transferred::Insufficient,
        ["too_much"] => Transferred::TooMuch,
        ["changed"] => Transferred::Changed,
        _ => return None,
    })
}

/// Returns id and lifetime of a record as `once.lua` takes them.
pub(crate) fn record_args(once: &Once, life: Option<Duration>) -> (&str, String) {
    match life {
        None => ("", String::new()),
        Some(life) => (&once.id, life.as_millis().to_string()),
    }
}
