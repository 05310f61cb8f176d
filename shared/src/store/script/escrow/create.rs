//! Making an escrow: its number and look-up come first, then the script, so a crash in between leaves a number that
//! nobody has and entries that no record confirms.

use super::{Asked, Blocked, CREATE, Called, facts, keep_blocked};
use crate::domain::intent::{Kind, Reason};
use crate::domain::money::Nanos;
use crate::store::escrow::Party;
use crate::store::intent::NewIntent;
use crate::store::keys;
use crate::store::script::change::{Event, nonsense};
use crate::store::wallet::announce;
use crate::store::{Store, StoreError};

/// An escrow to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewEscrow<'a> {
    /// Who pays: the caller's account.
    pub payer: &'a Party,
    /// Who is paid.
    pub payee: &'a Party,
    /// The amount.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// A JSON object.
    pub conditions: &'a str,
}

/// An escrow that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// Its number.
    pub number: u64,
    /// When.
    pub at_ms: u64,
}

impl NewEscrow<'_> {
    /// Makes it, unless a wallet is closed.
    ///
    /// # Errors
    /// [`StoreError`]; when it may have run, the escrow may exist.
    pub async fn create(&self, store: &Store, asked: &Asked<'_>) -> Result<Called<Made>, StoreError> {
        let number: u64 = store.command(redis::cmd("INCR").arg(keys::ESCROW_NUMBER)).await?;
        self.announce(store, asked, number).await?;
        let reply = match self.run(store, asked, number).await {
            Err(error @ StoreError::OverBudget { .. }) => {
                self.retract(store, asked, number).await?;
                return Err(error);
            }
            reply => reply?,
        };
        match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["settled", at_ms] => match at_ms.parse() {
                Ok(at_ms) => Ok(Called::Done(Made { number, at_ms })),
                Err(_) => nonsense(&CREATE),
            },
            ["known"] => {
                self.retract(store, asked, number).await?;
                Ok(Called::Known)
            }
            ["closed"] => {
                self.retract(store, asked, number).await?;
                self.refuse(store, asked).await
            }
            _ => nonsense(&CREATE),
        }
    }

    /// Keeps the intent of an escrow that was not made since a wallet is closed.
    ///
    /// # Errors
    /// [`StoreError`]; it may be repeated.
    pub async fn refuse(&self, store: &Store, asked: &Asked<'_>) -> Result<Called<Made>, StoreError> {
        let refusal = Blocked {
            intent: asked.once.id.clone(),
            reason: Reason::WalletClosed,
            status: None,
        };
        let intent = self.intent(asked, None);
        keep_blocked(store, asked, &intent, self.event(asked, None), refusal).await
    }

    async fn run(&self, store: &Store, asked: &Asked<'_>, number: u64) -> Result<Vec<String>, StoreError> {
        let (account, mode) = (asked.scope.keys(), asked.scope.mode);
        let elsewhere = self.crosses_accounts();
        let payee_owner = if elsewhere {
            &self.payer.owner
        } else {
            &self.payee.owner
        };
        let intent = self.intent(asked, Some(number));
        let mut keys = vec![
            account.wallet(mode, &self.payer.owner),
            account.wallet(mode, payee_owner),
            account.intent(mode, &asked.once.id),
        ];
        keys.extend(intent.place().index(&account, mode));
        keys.extend([account.escrow(mode, number), account.escrows(mode)]);
        let (from, to) = (self.payer.wallet.to_string(), self.payee.wallet.to_string());
        let own = self.fields(&from, &to, &asked.once.id);
        let own_count = own.len().to_string();
        let (heads, fields) = (intent.heads(false, &[]), intent.fields());
        let event = self.event(asked, Some(number));
        let number = number.to_string();
        let seen = if elsewhere { "" } else { to.as_str() };
        let mut args = vec![from.as_str(), seen, &number, &asked.once.id, &heads, &own_count];
        args.extend(own.iter().map(String::as_str));
        args.extend(fields.iter().map(String::as_str));
        asked.scope.run(store, &CREATE, event, &keys, &args).await
    }

    /// The fields of the record that do not change, with their values.
    fn fields(&self, from: &str, to: &str, intent: &str) -> Vec<String> {
        let amount = self.amount.get().to_string();
        let fields = [
            ("amount", amount.as_str()),
            ("currency", self.currency),
            ("from", from),
            ("from_owner", &self.payer.owner),
            ("to", to),
            ("to_account", &self.payee.account),
            ("to_owner", &self.payee.owner),
            ("conditions", self.conditions),
            ("intent", intent),
        ];
        fields
            .iter()
            .flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()])
            .collect()
    }

    fn intent<'a>(&'a self, asked: &'a Asked<'_>, escrow: Option<u64>) -> NewIntent<'a> {
        NewIntent {
            kind: Kind::EscrowCreate,
            fingerprint: &asked.once.fingerprint,
            amount: self.amount,
            currency: self.currency,
            actor: asked.scope.actor,
            agent: &self.payer.owner,
            at_ms: asked.at_ms,
            note: None,
            request: "{}",
            transaction: None,
            escrow,
        }
    }

    fn event(&self, asked: &Asked<'_>, number: Option<u64>) -> Event<'_> {
        let amount = (self.amount, self.currency);
        Event {
            kind: "escrow.create",
            agent: self.payer.agent(),
            data: facts(number, (self.payer, self.payee), amount, Some(&asked.once.id)),
        }
    }

    fn crosses_accounts(&self) -> bool {
        self.payer.account != self.payee.account
    }

    /// Writes what stands outside the payer's bucket.
    async fn announce(&self, store: &Store, asked: &Asked<'_>, number: u64) -> Result<(), StoreError> {
        let place = format!("{} {}", asked.scope.account, asked.scope.mode);
        announce(store, &keys::escrow_lookup(number), &place).await?;
        if self.crosses_accounts() {
            let list = self.payee.keys().escrows(asked.scope.mode);
            let mut add = redis::cmd("ZADD");
            let _: i64 = store.command(add.arg(list).arg(number).arg(number)).await?;
        }
        Ok(())
    }

    /// Takes it back when the escrow was not made.
    async fn retract(&self, store: &Store, asked: &Asked<'_>, number: u64) -> Result<(), StoreError> {
        if self.crosses_accounts() {
            let list = self.payee.keys().escrows(asked.scope.mode);
            let _: i64 = store.command(redis::cmd("ZREM").arg(list).arg(number)).await?;
        }
        let lookup = keys::escrow_lookup(number);
        let _: i64 = store.command(redis::cmd("DEL").arg(lookup)).await?;
        Ok(())
    }
}
