//! Searches the escrows of an account by state and wallet. They have no index, so a page reads a bounded number.

use super::{AT_ONCE, Escrow, EscrowStatus};
use crate::filtered_page::FilteredPage;
use crate::keys::AccountKeys;
use crate::page::{Page, Part, Position, SortedSet, Start};
use crate::{Store, StoreError};
use domain::mode::Mode;
use futures::{StreamExt, TryStreamExt, stream};

/// Most escrows read for a page.
pub const SCANNED_MAX: usize = 1000;
/// Escrows of which the numbers are read in one round trip.
const CHUNK: usize = 100;

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

impl Escrow {
    /// Lists the matching escrows of which the account is a party, newest first. A page reads [`SCANNED_MAX`] at most,
    /// so one with a next position may be short or empty.
    pub async fn search(
        store: &Store,
        (account, mode): (&str, Mode),
        filter: &EscrowFilter,
        page: Page<'_>,
    ) -> Result<FilteredPage<Self>, StoreError> {
        let set = AccountKeys::new(account).escrows(mode);
        let floor = None;
        let list = SortedSet {
            store,
            set: &set,
            floor,
        };
        let fits = |escrow: &Self| escrow.mode == mode && escrow.has_party(account) && filter.fits(escrow);
        let (skip, enough, mut start) = match page.start {
            Start::Offset(offset) => (offset, usize::MAX, None),
            Start::After(position) => (0, page.limit, Some(position.to_owned())),
        };
        let (mut found, mut total, mut scanned): (Vec<Self>, usize, usize) = (Vec::new(), 0, 0);
        let mut last = None;
        loop {
            let limit = CHUNK.min(SCANNED_MAX - scanned);
            let chunk = Page {
                limit,
                start: start.as_deref().map_or(Start::Offset(0), Start::After),
            };
            let chunk = list.marks(chunk).await?;
            let (count, mut rest) = (chunk.records.len(), chunk.next);
            let escrows = read(store, &chunk.records).await?;
            for (at, (mark, escrow)) in chunk.records.iter().zip(escrows).enumerate() {
                scanned += 1;
                let Some(escrow) = escrow.filter(fits) else {
                    continue;
                };
                total += 1;
                if total > skip && found.len() < page.limit {
                    found.push(escrow);
                    last = Some(mark.position());
                }
                if total == enough {
                    let goes_on = rest.is_some() || at + 1 < count;
                    rest = last.clone().filter(|_| goes_on);
                    break;
                }
            }
            start = rest;
            if start.is_none() || total >= enough || scanned >= SCANNED_MAX {
                break;
            }
        }
        let is_partial = start.is_some();
        let is_cut = total > skip.saturating_add(page.limit);
        let part = Part {
            records: found,
            total: total as u64,
            next: last.filter(|_| is_cut).or(start),
        };
        Ok(FilteredPage { part, is_partial })
    }
}

/// Reads the escrows of these numbers, in order, and individually: they can be in different slots.
async fn read(store: &Store, marks: &[Position]) -> Result<Vec<Option<Escrow>>, StoreError> {
    let numbers: Vec<String> = marks.iter().map(|mark| mark.member.clone()).collect();
    let reads = numbers.into_iter().map(|number| Escrow::of_member(store, number));
    stream::iter(reads).buffered(AT_ONCE).try_collect().await
}
