//! Searches the escrows of an account by state and wallet. They have no index, so a page judges a bounded number, by
//! the fields that the filter needs, and reads its matches only.

use super::{AT_ONCE, Escrow, EscrowStatus};
use crate::filtered_page::{FilteredPage, Judge};
use crate::keys::Realm;
use crate::page::{PageRequest, ScoredMember, SortedSet};
use crate::{Store, StoreError};
use futures::{StreamExt, TryStreamExt, stream};

/// Most escrows read for a page.
pub const SCANNED_MAX: usize = 1000;

/// A filter for escrows; without a field it matches all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EscrowFilter {
    /// Matches escrows in this state.
    pub status: Option<EscrowStatus>,
    /// Matches escrows whose payer or payee is the wallet of this number.
    pub wallet: Option<u64>,
}

impl EscrowFilter {
    /// Returns whether it matches every escrow.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    fn fits(&self, escrow_status: EscrowStatus, wallets: [u64; 2]) -> bool {
        self.status.is_none_or(|status| status == escrow_status)
            && self.wallet.is_none_or(|wallet| wallets.contains(&wallet))
    }
}

/// Judges the escrows of a list by their records, which can be in different slots.
struct Parties<'a> {
    store: &'a Store,
    realm: &'a Realm,
    filter: &'a EscrowFilter,
}

impl Parties<'_> {
    /// Returns whether the escrow of a member of the list matches, and has the account as a party. Conditions and
    /// reason of a dispute, which can be most of its record, stay in the store.
    async fn accept(&self, member: &str) -> Result<bool, StoreError> {
        let number = Escrow::number_of(member)?;
        let Some(place) = Escrow::payer_realm(self.store, number).await? else {
            return Ok(false);
        };
        let mut query = redis::cmd("HMGET");
        let fields = ["id", "status", "from", "to", "to_account"];
        query.arg(place.escrow(number)).arg(&fields);
        type Found = (
            Option<u64>,
            Option<String>,
            Option<u64>,
            Option<u64>,
            Option<String>,
        );
        let (id, status, payer, payee, account): Found = self.store.command(&query).await?;
        let status = status.as_deref().and_then(EscrowStatus::parse);
        match (id, status, payer, payee, account) {
            // Never written because of a crash.
            (None, ..) => Ok(false),
            (Some(id), Some(status), Some(payer), Some(payee), Some(account)) => {
                let realm = self.realm;
                let is_party = [place.account(), account.as_str()].contains(&realm.account());
                let is_listed = id == number && is_party && place.mode() == realm.mode();
                Ok(is_listed && self.filter.fits(status, [payer, payee]))
            }
            _ => Err(StoreError::unexpected("escrow")),
        }
    }
}

impl Judge for Parties<'_> {
    type Match = String;
    const CHUNK: usize = 100;

    fn scanned_max(&self) -> usize {
        SCANNED_MAX
    }

    async fn matches(&self, members: &[ScoredMember]) -> Result<Vec<Option<String>>, StoreError> {
        let members: Vec<String> = members.iter().map(|mark| mark.member.clone()).collect();
        let judged = members
            .into_iter()
            .map(|member| async move { Ok(self.accept(&member).await?.then_some(member)) });
        stream::iter(judged).buffered(AT_ONCE).try_collect().await
    }
}

impl Escrow {
    /// Lists the matching escrows of which the account is a party, newest first. A page reads [`SCANNED_MAX`] at most,
    /// so one with a next position may be short or empty.
    pub async fn search(
        store: &Store,
        realm: &Realm,
        filter: &EscrowFilter,
        page: PageRequest<'_>,
    ) -> Result<FilteredPage<Self>, StoreError> {
        let set = realm.escrows();
        let list = SortedSet::whole(store, &set);
        let parties = Parties { store, realm, filter };
        let FilteredPage { part, is_partial } = list.filtered(page, &parties).await?;
        let part = Self::read_members(store, realm, part).await?;
        Ok(FilteredPage { part, is_partial })
    }
}
