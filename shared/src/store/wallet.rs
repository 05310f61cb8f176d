//! Wallets: where one stands, what it holds, and how a caller names it (decisions D3, D16, D61).
//!
//! An agent's wallet is part of the agent's record; the account's own, the user wallet, is a record by itself. Both are
//! found by number (`17`) or id (`wal_…`) through look-ups outside the buckets.

use super::keys::{self, AccountKeys, USER};
use super::page::Page;
use super::script::change::Scope;
use super::{Store, StoreError};
use crate::domain::mode::Mode;
use crate::domain::money::Nanos;
use std::collections::HashMap;

pub mod totals;

/// Where a wallet stands. It never changes; the wallet may be closed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletPlace {
    /// The account.
    pub account: String,
    /// The mode.
    pub mode: Mode,
    /// The agent's id, or [`USER`].
    pub owner: String,
    /// The wallet's number.
    pub number: u64,
}

/// A wallet as it now is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wallet {
    /// Its number, unique in the store.
    pub number: u64,
    /// Its id, `wal_…`.
    pub id: String,
    /// The agent's id, or [`USER`].
    pub owner: String,
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub balance: Nanos,
    /// Deposits that are not confirmed yet.
    pub pending: Nanos,
    /// What it may spend in a UTC day through `POST /spend`.
    pub spend_limit: Option<Nanos>,
    /// Where it is in its life.
    pub status: WalletStatus,
    /// When it was made.
    pub created_at_ms: u64,
    /// When its row was last changed.
    pub updated_at_ms: u64,
}

/// The most that a wallet can hold: the scripts' CEILING, since balances are int64.
pub const BALANCE_MAX: Nanos = Nanos::from_stored(9_000_000_000_000_000_000);

/// Where a wallet is in its life (decision D16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalletStatus {
    /// Money comes and goes.
    Active,
    /// Its agent is frozen: money only comes.
    Frozen,
    /// Its agent was deleted.
    Closed,
}

impl WalletStatus {
    /// The word used in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Frozen => "frozen",
            Self::Closed => "closed",
        }
    }
}

impl WalletPlace {
    /// The agent whose wallet it is; none for the account's own.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        Some(self.owner.as_str()).filter(|owner| *owner != USER)
    }

    /// The next wallet number.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn next_number(store: &Store) -> Result<u64, StoreError> {
        store.command(redis::cmd("INCR").arg(keys::WALLET_NUMBER)).await
    }

    /// Writes the look-ups of a wallet that is about to be made, and returns their keys.
    ///
    /// # Errors
    /// [`StoreError`], also for a number that has a wallet: see [`announce`].
    pub(super) async fn write(
        store: &Store,
        scope: &Scope<'_>,
        owner: &str,
        number: u64,
        id: &str,
    ) -> Result<[String; 2], StoreError> {
        let lookups = [keys::wallet_lookup(&number.to_string()), keys::wallet_lookup(id)];
        let place = format!("{} {} {owner} {number}", scope.account, scope.mode);
        for lookup in &lookups {
            announce(store, lookup, &place).await?;
        }
        Ok(lookups)
    }

    /// Takes back the look-ups of a wallet that was not made.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn forget(store: &Store, lookups: &[String; 2]) -> Result<(), StoreError> {
        for lookup in lookups {
            let _: i64 = store.command(redis::cmd("DEL").arg(lookup)).await?;
        }
        Ok(())
    }

    /// The wallet of this number or id. What is found may be closed, or may never have come to be: see [`Wallet::at`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find(store: &Store, name: &str) -> Result<Option<Self>, StoreError> {
        let text: Option<String> = store
            .command(redis::cmd("GET").arg(keys::wallet_lookup(name)))
            .await?;
        let parse = |text: String| {
            let mut words = text.split(' ');
            Some(Self {
                account: words.next()?.to_owned(),
                mode: Mode::parse(words.next()?)?,
                owner: words.next()?.to_owned(),
                number: words.next()?.parse().ok()?,
            })
        };
        match text {
            None => Ok(None),
            Some(text) => parse(text)
                .map(Some)
                .ok_or_else(|| StoreError::Nonsense("wallet look-up".to_owned())),
        }
    }
}

impl Wallet {
    /// The wallet of `owner`, if it has one.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn of_owner(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        owner: &str,
    ) -> Result<Option<Self>, StoreError> {
        let key = account.wallet(mode, owner);
        let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(key)).await?;
        match fields.contains_key("wallet") {
            false => Ok(None),
            true => Self::from_fields(owner, &fields)
                .map(Some)
                .ok_or_else(|| StoreError::Nonsense("wallet".to_owned())),
        }
    }

    /// The wallets of the account's agents on a page, newest first, and how many there are in all.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn list(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        page: Page,
    ) -> Result<(Vec<Self>, u64), StoreError> {
        let key = |agent: &str| account.agent(mode, agent);
        let (records, total) = page.records(store, &account.agents(mode), key).await?;
        // One that was deleted between the two reads is left out.
        let there = records.iter().filter(|(_, fields)| fields.contains_key("wallet"));
        let wallets = there.map(|(agent, fields)| Self::from_fields(agent, fields));
        match wallets.collect::<Option<_>>() {
            Some(wallets) => Ok((wallets, total)),
            None => Err(StoreError::Nonsense("wallet".to_owned())),
        }
    }

    /// The wallet at `place`, also when it is closed. `None` when it never came to be.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn at(store: &Store, place: &WalletPlace) -> Result<Option<Self>, StoreError> {
        let account = AccountKeys::of(&place.account);
        let now = Self::of_owner(store, &account, place.mode, &place.owner).await?;
        if let Some(wallet) = now.filter(|wallet| wallet.number == place.number) {
            return Ok(Some(wallet));
        }
        let key = account.closed_wallet(place.mode, place.number);
        let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(key)).await?;
        match fields.is_empty() {
            true => Ok(None),
            false => Self::from_fields(&place.owner, &fields)
                .map(Some)
                .ok_or_else(|| StoreError::Nonsense("closed wallet".to_owned())),
        }
    }

    /// Reads the fields of a wallet record. `None` when they make no sense.
    #[must_use]
    pub fn from_fields(owner: &str, fields: &HashMap<String, String>) -> Option<Self> {
        let get = |name: &str| fields.get(name);
        let nanos = |text: &String| text.parse().ok().map(Nanos::from_stored);
        let status = match (get("closed_at"), get("frozen")) {
            (Some(_), _) => WalletStatus::Closed,
            (None, Some(_)) => WalletStatus::Frozen,
            (None, None) => WalletStatus::Active,
        };
        Some(Self {
            number: get("wallet_number")?.parse().ok()?,
            id: get("wallet")?.clone(),
            owner: owner.to_owned(),
            name: get("name").map_or_else(|| USER.to_owned(), Clone::clone),
            balance: nanos(get("balance")?)?,
            pending: get("pending").map_or(Some(Nanos::ZERO), nanos)?,
            spend_limit: match get("spend_limit") {
                None => None,
                Some(text) => Some(nanos(text)?),
            },
            status,
            created_at_ms: get("created_at")?.parse().ok()?,
            updated_at_ms: get("updated_at")?.parse().ok()?,
        })
    }
}

/// Writes the look-up of a number that was just given. A failover can take back what was counted and give a number twice:
/// the second one must not lead money of the first one elsewhere.
///
/// # Errors
/// [`StoreError::Nonsense`] when the number is taken; the next try gets the next number.
pub(super) async fn announce(store: &Store, lookup: &str, place: &str) -> Result<(), StoreError> {
    let mut set = redis::cmd("SET");
    set.arg(lookup).arg(place).arg("NX");
    let set: Option<String> = store.command_safely(&set, lookup).await?;
    match set {
        Some(_) => Ok(()),
        None => Err(StoreError::Nonsense(format!("`{lookup}` was given before"))),
    }
}
