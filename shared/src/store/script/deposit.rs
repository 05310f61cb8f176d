//! Twins of `deposit/*.lua`: money that enters (decision D17).

mod confirm;

pub use confirm::{Confirmation, Confirmed, confirm};

use super::change::{BUDGET, CHANGE, Event, MONEY, ONCE, REFUSALS, Scope, nonsense};
use super::lookup::note;
use super::transfer::record_args;
use super::{Script, WhenFull};
use crate::domain::budget::Budget;
use crate::domain::intent::{Kind, Reason};
use crate::domain::money::Nanos;
use crate::store::deposit::{Deposit, DepositState};
use crate::store::intent::NewIntent;
use crate::store::keys::deposit_lookup;
use crate::store::once::Once;
use crate::store::transaction::{NewTransaction, Tail, TransactionType};
use crate::store::wallet::WalletPlace;
use crate::store::{Store, StoreError};
use serde_json::json;
use std::sync::LazyLock;
use std::time::Duration;

/// Takes one in.
pub static MAKE: LazyLock<Script> = LazyLock::new(|| {
    let own = include_str!("deposit/make.lua");
    let parts = [CHANGE, BUDGET, MONEY, ONCE, REFUSALS, own];
    Script::new("deposit_make", WhenFull::Refuse, &parts)
        .of_money()
        .with_budgets()
});

/// Confirms one.
pub static CONFIRM: LazyLock<Script> = LazyLock::new(|| {
    let own = include_str!("deposit/confirm.lua");
    let parts = [CHANGE, BUDGET, MONEY, ONCE, REFUSALS, own];
    Script::new("deposit_confirm", WhenFull::Refuse, &parts)
        .of_money()
        .with_budgets()
});

/// A deposit.
#[derive(Debug)]
pub struct NewDeposit<'a> {
    /// The request.
    pub once: &'a Once,
    /// How long its record is kept; `None` for a request without a key, which leaves none.
    pub record_life: Option<Duration>,
    /// The wallet; its account and mode are those of the scope.
    pub wallet: &'a WalletPlace,
    /// Whether the wallet was seen closed, and so is for ever: then it is refused.
    pub closed: bool,
    /// How much.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// What the payment rail calls it, unique in the account and mode.
    pub reference: &'a str,
    /// Whether it is confirmed already.
    pub state: DepositState,
    /// Its transaction, which also names the deposit.
    pub transaction: &'a str,
    /// What the record keeps besides, as JSON.
    pub request: &'a str,
    /// When it was asked for, by our clock.
    pub at_ms: u64,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// It is there: since now, or since before when the reference was used for the same deposit.
    Done {
        /// The deposit.
        deposit: Deposit,
        /// Whether it was there before.
        again: bool,
    },
    /// Refused, which the record keeps.
    Blocked(Reason),
    /// The request was made before: its record tells what became of it.
    Known,
    /// The reference was used for another deposit.
    OtherDeposit,
    /// The wallet cannot hold that much.
    TooMuch,
    /// The wallet is not the one that was seen. Look again.
    Changed,
}

impl NewDeposit<'_> {
    /// Takes back what was noted for a pending deposit that was not made.
    async fn retract(&self, store: &Store, scope: &Scope<'_>) -> Result<(), StoreError> {
        let place = format!("{} {}", scope.account, scope.mode);
        let mut forget = redis::cmd("SREM");
        forget.arg(deposit_lookup(self.reference)).arg(place);
        let _: i64 = store.command(&forget).await?;
        Ok(())
    }

    /// Takes the deposit in.
    ///
    /// # Errors
    /// [`StoreError`]; it may be repeated.
    pub async fn run(&self, store: &Store, scope: &Scope<'_>) -> Result<Made, StoreError> {
        if self.state == DepositState::Pending && !self.closed {
            let place = format!("{} {}", scope.account, scope.mode);
            note(store, &deposit_lookup(self.reference), &place).await?;
        }
        let reply = match self.make(store, scope).await {
            // A repetition is refused by the budget of refusals: then the look-up is that of the deposit that is there.
            Err(error @ StoreError::OverBudget { budget, .. }) if budget != Budget::Refusals => {
                self.retract(store, scope).await?;
                return Err(error);
            }
            reply => reply?,
        };
        let again = match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["made"] => false,
            ["there"] => true,
            ["blocked", reason] => {
                return Reason::parse(reason).map_or_else(|| nonsense(&MAKE), |why| Ok(Made::Blocked(why)));
            }
            ["known"] => return Ok(Made::Known),
            ["too_much"] => return Ok(Made::TooMuch),
            ["changed"] => return Ok(Made::Changed),
            _ => return nonsense(&MAKE),
        };
        let deposit = Deposit::read(store, &scope.keys(), scope.mode, self.reference).await?;
        match deposit {
            Some(deposit) if self.is(&deposit) => Ok(Made::Done { deposit, again }),
            Some(_) => Ok(Made::OtherDeposit),
            None => nonsense(&MAKE),
        }
    }

    /// Whether `deposit` is the one that this asks for.
    fn is(&self, deposit: &Deposit) -> bool {
        let asked = (self.wallet.number, self.amount, self.currency);
        asked == (deposit.wallet, deposit.amount, deposit.currency.as_str())
    }

    async fn make(&self, store: &Store, scope: &Scope<'_>) -> Result<Vec<String>, StoreError> {
        let (account, owner) = (scope.keys(), self.wallet.owner.as_str());
        let mut keys = vec![account.transactions(scope.mode)];
        keys.extend(account.leg(scope.mode, owner, TransactionType::Deposit.as_str()));
        keys.push(account.deposit(scope.mode, self.reference));
        keys.push(account.intent(scope.mode, &self.once.id));
        let record = NewIntent {
            kind: Kind::Deposit,
            fingerprint: &self.once.fingerprint,
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
        let (id, life) = record_args(self.once, self.record_life);
        let refused = if self.closed {
            Reason::WalletClosed.as_str()
        } else {
            ""
        };
        let mut args = vec![
            number.as_str(),
            &amount,
            &words,
            self.state.as_str(),
            id,
            &life,
            refused,
        ];
        args.extend([self.transaction, self.reference, owner, self.currency]);
        args.extend(fields.iter().map(String::as_str));
        let event = Event {
            kind: "deposit.requested",
            agent: self.wallet.agent(),
            data: json!({ "walletId": self.wallet.number, "owner": owner, "transactionId": self.transaction,
                "reference": self.reference, "amountNanos": amount, "amount": self.amount,
                "currency": self.currency, "state": self.state.as_str() }),
        };
        scope.run(store, &MAKE, event, &keys, &args).await
    }
}

fn words(transaction: &str, owner: &str, currency: &str, reference: &str) -> String {
    let new = NewTransaction {
        id: transaction,
        kind: TransactionType::Deposit,
        owner,
        intent: None,
        currency,
        tail: Tail {
            counterparty: Some(reference.to_owned()),
            memo: None,
        },
    };
    new.words()
}
