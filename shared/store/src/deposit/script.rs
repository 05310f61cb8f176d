//! Twins of `deposit/*.lua`: money that enters (decision D17).

mod cancel;
mod confirm;

pub use cancel::{CANCEL, Cancelled, cancel};
pub use confirm::{CONFIRM, DepositConfirmation, DepositConfirmed, confirm};

use crate::deposit::{Deposit, DepositState};
use crate::idempotency::RequestIdentity;
use crate::intent::NewIntent;
use crate::keys::deposit_lookup;
use crate::lookup::script::note;
use crate::script::change::{
    AuditEvent, BUDGET, CAUSED, IDEMPOTENCY, KEPT_TEXT, MONEY, REFUSALS, Scope, unexpected_reply,
};
use crate::script::script;
use crate::transaction::{NewTransaction, TransactionText, TransactionType};
use crate::transfer::record_args;
use crate::wallet::WalletPlace;
use crate::{Store, StoreError};
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;
use serde_json::json;
use std::time::Duration;

script! {
    /// Creates a deposit.
    pub static MAKE = "deposit_make",
    kind: Change,
    source: [BUDGET, CAUSED, KEPT_TEXT, MONEY, IDEMPOTENCY, REFUSALS, include_str!("make.lua")],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    keys: struct DepositKeys: String { transactions, wallet[4], deposit, record },
    /// `amount` is nano-USD, `record_life` in ms.
    args: struct MakeArgs<'a>: &'a str {
        wallet_number, amount, transaction_text, state, record, record_life, refusal, transaction, reference, owner,
        currency, fields[..]
    },
}

impl DepositKeys {
    /// Returns the keys of the deposit `reference` into the wallet of `owner`.
    fn new(scope: &Scope<'_>, owner: &str, reference: &str, identity: &RequestIdentity) -> Self {
        let realm = scope.realm();
        Self {
            transactions: realm.transactions(),
            wallet: realm.leg(owner, TransactionType::Deposit.as_str()),
            deposit: realm.deposit(reference),
            record: realm.intent(&identity.id),
        }
    }
}

/// Arguments of a new deposit.
#[derive(Debug)]
pub struct NewDeposit<'a> {
    /// Identity of the request.
    pub identity: &'a RequestIdentity,
    /// Lifetime of the idempotency record; `None` for a request without a key, which leaves no record.
    pub record_life: Option<Duration>,
    /// The wallet; its account and mode are those of the scope.
    pub wallet: &'a WalletPlace,
    /// True if the wallet was read as closed, which is final. The deposit is then refused.
    pub closed: bool,
    /// Credited to the wallet on arrival.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// The payment rail's reference, unique in the account and mode.
    pub reference: &'a str,
    /// Initial state.
    pub state: DepositState,
    /// Id of its transaction, which is also the deposit's id.
    pub transaction: &'a str,
    /// The request's other fields, as JSON.
    pub request: &'a str,
    /// Time of the request on this process's clock, in ms since 1970.
    pub at_ms: u64,
}

/// Outcome of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DepositMade {
    /// The deposit exists, new or from an earlier request with the same content.
    Done {
        /// As stored.
        deposit: Deposit,
        /// True if the deposit existed before.
        again: bool,
    },
    /// Refused; the record contains the refusal.
    Blocked(Reason),
    /// A request with this id was made before; its record contains the outcome.
    Known,
    /// The reference belongs to another deposit.
    OtherDeposit,
    /// The deposit of the reference was announced, and this request says that it has arrived, or the other way round;
    /// or it was cancelled.
    OtherState {
        /// State of the existing deposit.
        now: DepositState,
    },
    /// The balance would exceed [`BALANCE_MAX`](crate::wallet::BALANCE_MAX).
    TooMuch,
    /// The wallet differs from the one that was read. Read it again.
    Changed,
}

/// Outcome of the script.
enum MakeOutcome {
    New,
    There,
    Other(DepositMade),
}

impl NewDeposit<'_> {
    /// Writes the look-up by reference.
    async fn announce(&self, store: &Store, scope: &Scope<'_>) -> Result<(), StoreError> {
        let place = format!("{} {}", scope.account, scope.mode);
        note(store, &deposit_lookup(self.reference), &place).await
    }

    /// Removes the look-up, unless a deposit with the reference exists that was announced.
    async fn retract(&self, store: &Store, scope: &Scope<'_>) -> Result<(), StoreError> {
        if self.is_there(store, scope).await? {
            return Ok(());
        }
        let place = format!("{} {}", scope.account, scope.mode);
        let mut forget = redis::cmd("SREM");
        forget.arg(deposit_lookup(self.reference)).arg(place);
        let _: i64 = store.command(&forget).await?;
        // Another request may have created it. A request that creates it after this read announces it afterwards.
        match self.is_there(store, scope).await? {
            true => self.announce(store, scope).await,
            false => Ok(()),
        }
    }

    /// Returns whether an announced deposit with the reference exists.
    async fn is_there(&self, store: &Store, scope: &Scope<'_>) -> Result<bool, StoreError> {
        let deposit = Deposit::read(store, &scope.realm(), self.reference).await?;
        Ok(deposit.is_some_and(|deposit| deposit.was_announced()))
    }

    /// Makes the look-up match the outcome of a request that was announced.
    async fn settle_note(
        &self,
        (store, scope): (&Store, &Scope<'_>),
        outcome: &Result<MakeOutcome, StoreError>,
    ) -> Result<(), StoreError> {
        match outcome {
            // A refused request may meanwhile have removed it.
            Ok(MakeOutcome::New) => self.announce(store, scope).await,
            // That of another request, which may have been confirmed at once. A reply other than the known ones means
            // that the account is gone.
            Ok(_)
            | Err(
                StoreError::OverBudget { .. } | StoreError::NotPermitted(_) | StoreError::UnexpectedReply(_),
            ) => self.retract(store, scope).await,
            // The deposit may exist, and the request may be retried.
            Err(_) => Ok(()),
        }
    }

    /// Creates the deposit.
    /// Safe to retry.
    pub async fn execute(&self, store: &Store, scope: &Scope<'_>) -> Result<DepositMade, StoreError> {
        let is_announced = self.state == DepositState::Pending && !self.closed;
        if is_announced {
            self.announce(store, scope).await?;
        }
        let outcome = self.make(store, scope).await;
        if is_announced {
            self.settle_note((store, scope), &outcome).await?;
        }
        let again = match outcome? {
            MakeOutcome::New => false,
            MakeOutcome::There => true,
            MakeOutcome::Other(made) => return Ok(made),
        };
        let deposit = Deposit::read(store, &scope.realm(), self.reference).await?;
        match deposit {
            Some(deposit) if !self.is(&deposit) => Ok(DepositMade::OtherDeposit),
            Some(deposit) if self.state != deposit.first || deposit.state == DepositState::Cancelled => {
                Ok(DepositMade::OtherState { now: deposit.state })
            }
            Some(deposit) => Ok(DepositMade::Done { deposit, again }),
            None => unexpected_reply(&MAKE),
        }
    }

    /// Returns whether `deposit` is the requested one, announced or not.
    fn is(&self, deposit: &Deposit) -> bool {
        let requested = (self.wallet.number, self.amount, self.currency);
        requested == (deposit.wallet, deposit.amount, deposit.currency.as_str())
    }

    async fn make(&self, store: &Store, scope: &Scope<'_>) -> Result<MakeOutcome, StoreError> {
        let owner = self.wallet.owner.as_str();
        let keys = DepositKeys::new(scope, owner, self.reference, self.identity);
        let record = NewIntent {
            kind: IntentKind::Deposit,
            fingerprint: &self.identity.fingerprint,
            amount: self.amount,
            currency: self.currency,
            actor: scope.actor,
            agent: owner,
            at_ms: self.at_ms,
            note: None,
            request: self.request,
            transaction: Some(self.transaction),
            escrow: None,
        };
        let fields = record.fields();
        let words = words(self.transaction, owner, self.currency, self.reference);
        let (number, amount) = (self.wallet.number.to_string(), self.amount.get().to_string());
        let (id, life) = record_args(self.identity, self.record_life);
        let args = MakeArgs {
            wallet_number: &number,
            amount: &amount,
            transaction_text: &words,
            state: self.state.as_str(),
            record: id,
            record_life: &life,
            refusal: if self.closed {
                Reason::WalletClosed.as_str()
            } else {
                ""
            },
            transaction: self.transaction,
            reference: self.reference,
            owner,
            currency: self.currency,
            fields: fields.iter().map(String::as_str).collect(),
        };
        let data = json!({ "walletId": self.wallet.number, "owner": owner, "transactionId": self.transaction,
            "reference": self.reference, "amountNanos": amount, "amount": self.amount,
            "currency": self.currency, "state": self.state.as_str() });
        let event = AuditEvent::new("deposit.requested", data).with_agent(self.wallet.agent());
        let mut reply = scope.execute(store, &MAKE, event, keys, args).await?;
        match reply.word()?.as_str() {
            "made" => Ok(MakeOutcome::New),
            "there" => Ok(MakeOutcome::There),
            "blocked" => Ok(MakeOutcome::Other(DepositMade::Blocked(
                reply.parsed(Reason::parse)?,
            ))),
            "known" => Ok(MakeOutcome::Other(DepositMade::Known)),
            "too_much" => Ok(MakeOutcome::Other(DepositMade::TooMuch)),
            "changed" => Ok(MakeOutcome::Other(DepositMade::Changed)),
            _ => reply.unexpected(),
        }
    }
}

fn words(transaction: &str, owner: &str, currency: &str, reference: &str) -> String {
    let new = NewTransaction {
        id: transaction,
        kind: TransactionType::Deposit,
        owner,
        intent: None,
        currency,
        tail: TransactionText {
            counterparty: Some(reference.to_owned()),
            memo: None,
        },
    };
    new.words()
}
