//! Wallets: location, balance and names (decisions D3, D16, D61).
//!
//! An agent's wallet is part of the agent's record; the account's own wallet, the user wallet, has its own record. Both
//! are found by number, which contains the bucket, or by id (`wal_…`), which contains the number. Each wallet has a
//! *place*, written by the same script, so neither can be lost without the other.

use crate::keys::{self, Bucket, Realm, Series, USER};
use crate::number;
use crate::page::{Page, PageRequest};
use crate::record_fields::RecordFields;
use crate::script::change::Scope;
use crate::{Store, StoreError};
use clock::now_ms;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::number::Number;
use std::collections::HashMap;

pub mod aggregate;
pub mod script;
pub mod totals;

/// Location of a wallet. It never changes; the wallet may be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletPlace {
    /// Account id, `acct_…`.
    pub account: String,
    /// `live` or `test`.
    pub mode: Mode,
    /// Owner: agent id, or [`USER`].
    pub owner: String,
    /// Unique in the store.
    pub number: u64,
}

/// A wallet's current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wallet {
    /// Number, unique in the store.
    pub number: u64,
    /// Its id, `wal_…`.
    pub id: String,
    /// Owner: agent id, or [`USER`].
    pub owner: String,
    /// Display name.
    pub name: String,
    /// Spendable money; pending deposits and funded escrows are not in it.
    pub balance: Nanos,
    /// Sum of pending deposits.
    pub pending: Nanos,
    /// Maximum amount that `POST /spend` may take from it in a UTC day.
    pub spend_limit: Option<Nanos>,
    /// Frozen while its agent is, closed with it.
    pub status: WalletStatus,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Time of the last change of its row, in ms since 1970.
    pub updated_at_ms: u64,
}

/// Largest balance: the scripts' BALANCE_USD_MAX, since balances are int64.
pub const BALANCE_MAX: Nanos = Nanos::from_stored(9_000_000_000_000_000_000);

/// Largest balance up to which other accounts may fill a wallet by their own requests: a tenth of [`BALANCE_MAX`]. The
/// rest is for the account's own deposits and releases, so that no stranger's money keeps them out.
pub const BALANCE_BY_OTHERS_MAX: Nanos = Nanos::from_stored(BALANCE_MAX.get() / 10);

domain::words! {
    /// Status of a wallet (decision D16).
    pub enum WalletStatus {
        /// Pays and receives.
        Active = "active",
        /// Its agent is frozen: the wallet can only receive.
        Frozen = "frozen",
        /// Its agent was deleted.
        Closed = "closed",
    }
}

impl WalletPlace {
    /// Returns the agent of the wallet; `None` for the account's own.
    pub fn agent(&self) -> Option<&str> {
        keys::agent_of_owner(&self.owner)
    }

    /// Finds the wallet with this number or id. It may be closed: see [`Wallet::at`].
    pub async fn find(store: &Store, name: &str) -> Result<Option<Self>, StoreError> {
        let carried = IdKind::Wallet.number_in(name);
        let Some(number) = carried.or_else(|| Number::from_u64(name.parse().ok()?)) else {
            return Ok(None);
        };
        let parse = |text: &str| Self::parse(number.get(), text);
        let place = Bucket::wallet_place(number);
        let found = store.lookup(place, "place of a wallet", parse).await?;
        // An id that nobody has can contain the number of another wallet.
        let found = found.filter(|(_, id)| carried.is_none() || id == name);
        Ok(found.map(|(place, _)| place))
    }

    /// Parses `<account> <mode> <owner> <wallet id>`; returns the id, too.
    pub fn parse(number: u64, text: &str) -> Option<(Self, String)> {
        let mut words = text.split(' ');
        let place = Self {
            account: words.next()?.to_owned(),
            mode: Mode::parse(words.next()?)?,
            owner: words.next()?.to_owned(),
            number,
        };
        Some((place, words.next()?.to_owned()))
    }
}

/// Number, id and place of a wallet to be created.
pub(super) struct NewWalletPlace {
    pub(super) number: Number,
    /// `wal_…`
    pub(super) id: String,
    pub(super) place_key: String,
    /// Value of the place, as [`WalletPlace::parse`] reads it.
    pub(super) place_text: String,
}

impl NewWalletPlace {
    /// Draws the number.
    /// Safe to retry.
    pub(super) async fn draw(store: &Store, scope: &Scope<'_>, owner: &str) -> Result<Self, StoreError> {
        let number = number::draw(store, Bucket::from_account(scope.account), Series::Wallet).await?;
        let id = IdKind::Wallet.mint_with(now_ms(), number);
        let id = id.map_err(StoreError::unexpected)?;
        Ok(Self {
            place_key: Bucket::wallet_place(number),
            place_text: format!("{} {} {owner} {id}", scope.account, scope.mode),
            number,
            id,
        })
    }
}

impl Wallet {
    /// Fields of a record that [`Wallet::from_fields`] reads.
    const FIELDS: [&str; 10] = [
        "wallet_number",
        "wallet",
        "name",
        "balance",
        "pending",
        "spend_limit",
        "frozen",
        "closed_at",
        "created_at",
        "updated_at",
    ];

    /// Returns the agent of the wallet; `None` for the account's own.
    pub fn agent(&self) -> Option<&str> {
        keys::agent_of_owner(&self.owner)
    }

    /// Reads the wallet of `owner`; `None` if it has none.
    pub async fn find_by_owner(
        store: &Store,
        realm: &Realm,
        owner: &str,
    ) -> Result<Option<Self>, StoreError> {
        let key = realm.wallet(owner);
        let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(key)).await?;
        match fields.contains_key("wallet") {
            false => Ok(None),
            true => Self::from_fields(owner, &fields)
                .map(Some)
                .ok_or_else(|| StoreError::unexpected("wallet")),
        }
    }

    /// Lists the wallets of the account's agents, newest first.
    async fn list(store: &Store, realm: &Realm, page: PageRequest<'_>) -> Result<Page<Self>, StoreError> {
        let key = |agent: &str| realm.agent(agent);
        let part = page.records(store, &realm.agents(), key).await?;
        // Skips a wallet deleted between the two reads.
        let there = part
            .records
            .iter()
            .filter(|(_, fields)| fields.contains_key("wallet"));
        let wallets = there.map(|(agent, fields)| Self::from_fields(agent, fields));
        match wallets.collect::<Option<_>>() {
            Some(wallets) => Ok(part.with(wallets)),
            None => Err(StoreError::unexpected("wallet")),
        }
    }

    /// Reads the wallet at `place`, closed or not; `None` if it was never created.
    pub async fn at(store: &Store, place: &WalletPlace) -> Result<Option<Self>, StoreError> {
        let realm = Realm::new(&place.account, place.mode);
        let now = Self::find_by_owner(store, &realm, &place.owner).await?;
        if let Some(wallet) = now.filter(|wallet| wallet.number == place.number) {
            return Ok(Some(wallet));
        }
        let key = realm.closed_wallet(place.number);
        let parse = |fields: &HashMap<String, String>| Self::from_fields(&place.owner, fields);
        store.record(key, "closed wallet", parse).await
    }

    /// Parses the fields of a wallet record; `None` if they are malformed.
    pub fn from_fields(owner: &str, fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        let status = match (fields.get("closed_at"), fields.get("frozen")) {
            (Some(_), _) => WalletStatus::Closed,
            (None, Some(_)) => WalletStatus::Frozen,
            (None, None) => WalletStatus::Active,
        };
        Some(Self {
            number: fields.number("wallet_number")?,
            id: fields.text("wallet")?,
            owner: owner.to_owned(),
            name: fields.text("name").unwrap_or_else(|| USER.to_owned()),
            balance: fields.nanos("balance")?,
            pending: Nanos::from_stored(fields.optional("pending")?.unwrap_or(0)),
            spend_limit: fields.optional("spend_limit")?.map(Nanos::from_stored),
            status,
            created_at_ms: fields.number("created_at")?,
            updated_at_ms: fields.number("updated_at")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back() {
        let place = WalletPlace {
            account: "acct_1".to_owned(),
            mode: Mode::Test,
            owner: "bot".to_owned(),
            number: 17,
        };
        let (read, id) = WalletPlace::parse(17, "acct_1 test bot wal_1").unwrap();
        assert_eq!((read, id.as_str()), (place, "wal_1"));
        for bad in ["", "acct_1", "acct_1 test bot", "acct_1 prod bot wal_1"] {
            assert!(WalletPlace::parse(17, bad).is_none(), "{bad:?}");
        }
    }
}
