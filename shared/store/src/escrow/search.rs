//! Searches the escrows of an account by state and wallet. They have no index, so a page reads a bounded number.

use super::{AT_ONCE, Escrow, EscrowStatus};
use crate::filtered_page::{FilteredPage, Judge};
use crate::keys::Realm;
use crate::page::{Page, Position, SortedSet};
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
    /// Whether it matches every escrow.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    fn fits(&self, escrow: &Escrow) -> bool {
        let is_party = |wallet: u64| [escrow.payer.wallet, escrow.payee.wallet].contains(&wallet);
        self.status.is_none_or(|status| status == escrow.status) && self.wallet.is_none_or(is_party)
    }
}

/// Judges the escrows of a list by their records, which can be in different slots.
struct Parties<'a> {
    store: &'a Store,
    realm: &'a Realm,
    filter: &'a EscrowFilter,
}

impl Judge for Parties<'_> {
    type Match = Escrow;
    const CHUNK: usize = 100;

    fn scanned_max(&self) -> usize {
        SCANNED_MAX
    }

    async fn matches(&self, members: &[Position]) -> Result<Vec<Option<Escrow>>, StoreError> {
        let fits = |escrow: &Escrow| escrow.is_listed_in(self.realm) && self.filter.fits(escrow);
        let numbers: Vec<String> = members.iter().map(|mark| mark.member.clone()).collect();
        let reads = numbers
            .into_iter()
            .map(|number| Escrow::of_member(self.store, number));
        let read: Vec<Option<Escrow>> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
        Ok(read.into_iter().map(|escrow| escrow.filter(fits)).collect())
    }
}

impl Escrow {
    /// Lists the matching escrows of which the account is a party, newest first. A page reads [`SCANNED_MAX`] at most,
    /// so one with a next position may be short or empty.
    pub async fn search(
        store: &Store,
        realm: &Realm,
        filter: &EscrowFilter,
        page: Page<'_>,
    ) -> Result<FilteredPage<Self>, StoreError> {
        let set = realm.escrows();
        let list = SortedSet::whole(store, &set);
        let parties = Parties { store, realm, filter };
        list.filtered(page, &parties).await
    }
}
