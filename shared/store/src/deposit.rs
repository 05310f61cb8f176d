//! Deposits: records parsed here, written by scripts (decision D17).

pub mod script;

use crate::keys::{Realm, deposit_lookup};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use domain::money::Nanos;
use domain::printable::{is_composed, is_seen};
use std::collections::HashMap;

/// Longest rail reference, in characters.
pub const REFERENCE_MAX: usize = 200;

/// Maximum number of accounts and modes that are read for one reference.
const ANNOUNCED_MAX: usize = 100;

/// Returns whether `text` is a valid rail reference: 1 to [`REFERENCE_MAX`] characters that cannot be mistaken for
/// another reference. It has no invisible characters, none that change the direction of text, no blanks at its ends, no
/// two together, no white space other than `' '`, and each letter in its composed form.
pub fn is_reference(text: &str) -> bool {
    let is_shown = |c: char| c == ' ' || is_seen(c);
    let is_spaced = text.trim() == text && !text.contains("  ");
    (1..=REFERENCE_MAX).contains(&text.chars().count())
        && text.chars().all(is_shown)
        && is_spaced
        && is_composed(text)
}

domain::words! {
    /// State of a deposit.
    pub enum DepositState {
        /// Announced; counts in `usdcPending`.
        Pending = "pending",
        /// The money is in the wallet.
        Confirmed = "confirmed",
        /// Announced, and taken back before it arrived.
        Cancelled = "cancelled",
    }
}

/// An announced deposit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedDeposit {
    /// Account and mode.
    pub realm: Realm,
    /// State of the deposit there.
    pub state: DepositState,
}

/// Money credited to a wallet, or expected by it, under a reference of a payment rail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// Id of its transaction, `txn_…`, present or future.
    pub id: String,
    /// The payment rail's reference.
    pub reference: String,
    /// Owner of the wallet.
    pub owner: String,
    /// Wallet number.
    pub wallet: u64,
    /// Counts in `usdcPending` until it arrives or is cancelled.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: String,
    /// Current state.
    pub state: DepositState,
    /// State at creation.
    pub first: DepositState,
    /// Balance of the wallet at creation, including a deposit that was confirmed at once.
    pub first_balance: Nanos,
    /// Creation time, in ms since 1970.
    pub at_ms: u64,
    /// Time of the confirmation, in ms since 1970, and the balance after it.
    pub confirmed: Option<(u64, Nanos)>,
    /// Time of the cancellation, in ms since 1970.
    pub cancelled_ms: Option<u64>,
}

impl Deposit {
    /// Reads the deposit with this reference; `None` if it does not exist.
    pub async fn read(store: &Store, realm: &Realm, reference: &str) -> Result<Option<Self>, StoreError> {
        let key = realm.deposit(reference);
        store.record(key, "deposit", Self::from_fields).await
    }

    /// Reads the deposits of these references, in order; `None` for one that does not exist.
    pub async fn read_all(
        store: &Store,
        realm: &Realm,
        references: &[String],
    ) -> Result<Vec<Option<Self>>, StoreError> {
        let keys = references.iter().map(|reference| realm.deposit(reference));
        let found: Vec<HashMap<String, String>> = store.each("HGETALL", keys).await?;
        let read = found.iter().map(|fields| match fields.is_empty() {
            true => Ok(None),
            false => match Self::from_fields(fields) {
                Some(deposit) => Ok(Some(deposit)),
                None => Err(StoreError::unexpected("deposit")),
            },
        });
        read.collect()
    }

    /// Returns whether it began as pending: only then is it found by its reference alone.
    pub fn was_announced(&self) -> bool {
        self.first == DepositState::Pending
    }

    /// Returns the accounts and modes that announced a deposit with this reference and still have it, and whether these
    /// are all: of very many some are read.
    pub async fn announced(
        store: &Store,
        reference: &str,
    ) -> Result<(Vec<AnnouncedDeposit>, bool), StoreError> {
        let realms: Vec<String> = store
            .command(
                redis::cmd("SRANDMEMBER")
                    .arg(deposit_lookup(reference))
                    .arg(ANNOUNCED_MAX),
            )
            .await?;
        let are_all = realms.len() < ANNOUNCED_MAX;
        let mut known = Vec::new();
        for realm in realms {
            let realm = Realm::parse(&realm).ok_or_else(|| StoreError::unexpected("deposit look-up"))?;
            // The look-up is written before the deposit, which may then be refused, or exist already confirmed.
            let deposit = Self::read(store, &realm, reference).await?;
            let announced = deposit.filter(Self::was_announced);
            let state = announced.map(|deposit| deposit.state);
            known.extend(state.map(|state| AnnouncedDeposit { realm, state }));
        }
        known.sort_unstable_by_key(|deposit| deposit.realm.to_string());
        Ok((known, are_all))
    }

    /// Parses the fields of a record; `None` if they are malformed.
    pub fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        Some(Self {
            id: fields.text("id")?,
            reference: fields.text("reference")?,
            owner: fields.text("owner")?,
            wallet: fields.number("number")?,
            amount: fields.nanos("amount")?,
            currency: fields.text("currency")?,
            state: DepositState::parse(fields.get("state")?)?,
            first: DepositState::parse(fields.get("first")?)?,
            first_balance: fields.nanos("first_balance")?,
            at_ms: fields.number("at")?,
            confirmed: match fields.get("confirmed_at") {
                None => None,
                Some(_) => Some((fields.number("confirmed_at")?, fields.nanos("balance")?)),
            },
            cancelled_ms: fields.optional("cancelled_at")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_look_like_no_other_one() {
        for good in [
            "inv-9",
            "a",
            "Überweisung 7/é",
            "INV 9 b",
            "RF18 5390 0754 7034",
            "編號7",
            &"é".repeat(200),
        ] {
            assert!(is_reference(good), "{good:?}");
        }
        for bad in [
            "",
            " ",
            "inv-9 ",
            " inv-9",
            "inv-9\u{200b}",
            "inv\u{ad}-9",
            "\u{202e}9-vni",
            "\u{3164}",
            "inv\u{a0}9",
            "inv-9\u{a0}",
            "inv\u{3000}9",
            "inv\n9",
            "inv  9",
            "Mu\u{308}ller-1",
            "a\u{7f}",
            &"é".repeat(201),
        ] {
            assert!(!is_reference(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_record_is_read_whole_or_not_at_all() {
        let all = [
            ("id", "txn_1"),
            ("reference", "r"),
            ("owner", "bot"),
            ("number", "7"),
            ("amount", "5"),
            ("currency", "USD"),
            ("state", "confirmed"),
            ("first", "pending"),
            ("first_balance", "1"),
            ("at", "10"),
            ("confirmed_at", "20"),
            ("balance", "6"),
            ("cancelled_at", "30"),
        ];
        let fields = |without: &str| {
            let rest = all.iter().filter(|(name, _)| *name != without);
            rest.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<HashMap<_, _>>()
        };
        let deposit = Deposit::from_fields(&fields("")).unwrap();
        assert_eq!(deposit.confirmed, Some((20, Nanos::from_stored(6))));
        assert_eq!(deposit.cancelled_ms, Some(30));
        assert_eq!(
            (deposit.first, deposit.state),
            (DepositState::Pending, DepositState::Confirmed)
        );
        let made_at_once = Deposit {
            first: DepositState::Confirmed,
            ..deposit.clone()
        };
        assert!(deposit.was_announced() && !made_at_once.was_announced());
        for (name, _) in all {
            let read = Deposit::from_fields(&fields(name));
            let is_optional = ["confirmed_at", "cancelled_at"].contains(&name);
            assert_eq!(read.is_some(), is_optional, "{name}");
        }
    }
}
