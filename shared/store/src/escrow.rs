//! Escrows: money held between two wallets (specification "Escrow", decisions D3, D27). The record is in the payer's
//! account. Its *place*, found by number, names account and mode. Both accounts list the number.

pub mod script;
pub mod search;

use crate::keys::{self, Bucket, Realm};
use crate::page::{Page, PageRequest};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use domain::intent::Reason;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::number::Number;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;

/// Escrows of a page that are read concurrently. A record has at most 16 KiB of conditions and some 3 KB of other
/// fields, together 310 KB.
const AT_ONCE: usize = 16;

domain::words! {
    /// State of an escrow. Through the API the last three are final; the operator resolves a dispute.
    pub enum EscrowStatus {
        /// Created; no money has moved.
        Pending = "pending",
        /// Holds the payer's money.
        Funded = "funded",
        /// Paid to the payee.
        Released = "released",
        /// Holds the money until the operator decides.
        Disputed = "disputed",
        /// Paid back to the payer.
        Refunded = "refunded",
    }
}

impl EscrowStatus {
    /// Returns the status that the reason of a refused release or dispute implies.
    pub const fn from_reason(reason: Reason) -> Option<Self> {
        match reason {
            Reason::EscrowReleased => Some(Self::Released),
            Reason::EscrowDisputed => Some(Self::Disputed),
            Reason::EscrowRefunded => Some(Self::Refunded),
            Reason::EscrowNotFunded => Some(Self::Pending),
            _ => None,
        }
    }
}

/// A party of an escrow: a wallet and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// Account id, `acct_…`.
    pub account: String,
    /// Owner: agent id, or `user`.
    pub owner: String,
    /// Wallet number.
    pub wallet: u64,
}

impl Party {
    /// Returns the realm of its account in this mode.
    pub fn realm(&self, mode: Mode) -> Realm {
        Realm::new(&self.account, mode)
    }

    /// Returns the agent of the wallet; `None` for a user wallet.
    pub fn agent(&self) -> Option<&str> {
        keys::agent_of_owner(&self.owner)
    }
}

/// Money that a payer sets aside for a payee, with its conditions and state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escrow {
    /// Number, unique in the store.
    pub number: u64,
    /// `live` or `test`.
    pub mode: Mode,
    /// Owner of the wallet that funds it.
    pub payer: Party,
    /// Owner of the wallet that a release credits.
    pub payee: Party,
    /// Current state.
    pub status: EscrowStatus,
    /// Leaves the payer's wallet when the escrow is funded.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: String,
    /// The parties' conditions, a JSON object; not enforced.
    pub conditions: String,
    /// `None` for an escrow that was never disputed.
    pub dispute_reason: Option<String>,
    /// Intent that created it.
    pub intent: String,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Time of the last change, in ms since 1970.
    pub updated_at_ms: u64,
}

impl Escrow {
    /// Returns whether `account` is a party.
    pub fn has_party(&self, account: &str) -> bool {
        self.payer.account == account || self.payee.account == account
    }

    /// Returns whether the account is a party in this mode.
    fn is_listed_in(&self, realm: &Realm) -> bool {
        self.mode == realm.mode() && self.has_party(realm.account())
    }

    /// Returns whether payer and payee are in different accounts.
    pub fn crosses_accounts(&self) -> bool {
        self.payer.account != self.payee.account
    }

    /// Reads the escrow `number` of any account; `None` if it does not exist.
    pub async fn read(store: &Store, number: u64) -> Result<Option<Self>, StoreError> {
        let Some(realm) = Self::payer_realm(store, number).await? else {
            return Ok(None);
        };
        let key = realm.escrow(number);
        let parse = |fields: &HashMap<String, String>| {
            Self::from_fields(&realm, fields).filter(|escrow| escrow.number == number)
        };
        store.record(key, "escrow", parse).await
    }

    /// Reads the realm of the payer of the escrow `number`, which has its record; `None` if there is none.
    pub(super) async fn payer_realm(store: &Store, number: u64) -> Result<Option<Realm>, StoreError> {
        let Some(number) = Number::from_u64(number) else {
            return Ok(None);
        };
        let key = Bucket::escrow_place(number);
        store.lookup(key, "place of an escrow", Realm::parse).await
    }

    /// Lists the escrows with the account as a party, newest first. Skips numbers whose escrow was never written
    /// because of a crash.
    pub async fn list(store: &Store, realm: &Realm, page: PageRequest<'_>) -> Result<Page<Self>, StoreError> {
        let part = page.members(store, &realm.escrows()).await?;
        Self::read_members(store, realm, part).await
    }

    /// Reads the escrows of the members of a list that have the account as a party.
    async fn read_members(
        store: &Store,
        realm: &Realm,
        mut part: Page<String>,
    ) -> Result<Page<Self>, StoreError> {
        let members = std::mem::take(&mut part.records);
        let reads = members.into_iter().map(|member| async move {
            let number = Self::number_of(&member)?;
            Self::read(store, number).await
        });
        // In order, and individually: the records of a page can be in different slots.
        let found: Vec<Option<Self>> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
        let mine = |escrow: &Self| escrow.is_listed_in(realm);
        Ok(part.with(found.into_iter().flatten().filter(mine).collect()))
    }

    /// Returns the number that a list has as a member.
    fn number_of(member: &str) -> Result<u64, StoreError> {
        member
            .parse()
            .map_err(|_| StoreError::unexpected("list of escrows"))
    }

    /// Parses the fields of a record; `None` if they are malformed.
    fn from_fields(realm: &Realm, fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        let party = |account: &str, owner: &str, wallet: &str| {
            Some(Party {
                account: account.to_owned(),
                owner: fields.text(owner)?,
                wallet: fields.number(wallet)?,
            })
        };
        Some(Self {
            number: fields.number("id")?,
            mode: realm.mode(),
            payer: party(realm.account(), "from_owner", "from")?,
            payee: party(fields.get("to_account")?, "to_owner", "to")?,
            status: EscrowStatus::parse(fields.get("status")?)?,
            amount: fields.nanos("amount")?,
            currency: fields.text("currency")?,
            conditions: fields.text("conditions")?,
            dispute_reason: fields.text("dispute_reason"),
            intent: fields.text("intent")?,
            created_at_ms: fields.number("created_at")?,
            updated_at_ms: fields.number("updated_at")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_contains_the_status() {
        for reason in Reason::ALL {
            let met = EscrowStatus::from_reason(*reason);
            let named = reason.as_str().strip_prefix("escrow_").map(EscrowStatus::parse);
            if let Some(Some(status)) = named {
                assert_eq!(met, Some(status), "{reason:?}");
            }
        }
        assert_eq!(
            EscrowStatus::from_reason(Reason::EscrowNotFunded),
            Some(EscrowStatus::Pending)
        );
        assert_eq!(EscrowStatus::from_reason(Reason::Frozen), None);
    }

    #[test]
    fn a_record_that_lacks_a_field_is_none() {
        let fields = [
            ("id", "7"),
            ("status", "funded"),
            ("amount", "9000000000000000"),
            ("currency", "USD"),
            ("from", "1"),
            ("from_owner", "user"),
            ("to", "2"),
            ("to_account", "acct_2"),
            ("to_owner", "bot"),
            ("conditions", "{}"),
            ("intent", "int_1"),
            ("created_at", "5"),
            ("updated_at", "6"),
        ];
        let all: HashMap<String, String> = fields.map(|(name, value)| (name.into(), value.into())).into();
        let read =
            |fields: &HashMap<String, String>| Escrow::from_fields(&Realm::new("acct_1", Mode::Live), fields);
        let escrow = read(&all).unwrap();
        assert!(escrow.has_party("acct_1") && escrow.has_party("acct_2") && !escrow.has_party("acct_3"));
        assert!(escrow.crosses_accounts());
        let is_listed = |account: &str, mode| escrow.is_listed_in(&Realm::new(account, mode));
        assert!(is_listed("acct_1", Mode::Live) && is_listed("acct_2", Mode::Live));
        assert!(!is_listed("acct_1", Mode::Test) && !is_listed("acct_3", Mode::Live));
        assert_eq!((escrow.payer.agent(), escrow.payee.agent()), (None, Some("bot")));
        assert_eq!(escrow.amount, Nanos::MAX);
        for (name, _) in fields {
            let mut less = all.clone();
            less.remove(name);
            assert_eq!(read(&less), None, "without {name}");
        }
    }
}
