//! Reading one page of those members of a listing that fit a filter which no index knows: a bounded look at their
//! records. What was not looked at comes on the pages behind it.

use crate::StoreError;
use crate::page::{Page, Part, Position, SortedSet, Start};

/// Records looked at in one round trip.
const CHUNK: usize = 500;

/// What fits.
pub(super) struct Filter<'a, K, F> {
    /// Records looked at for a page, at most.
    pub(super) scanned_max: usize,
    /// The key of a member's record.
    pub(super) key: K,
    /// The fields that are looked at.
    pub(super) fields: &'a [&'a str],
    /// Whether a member with these fields fits.
    pub(super) fits: F,
}

/// A page of what fits. Its total is what was found for it: behind an offset among all that were looked at, behind a
/// position no more than the page holds.
pub(super) struct FilteredPage {
    pub(super) part: Part<String>,
    /// True when members are left that were not looked at.
    pub(super) is_partial: bool,
}

/// What a look has seen until now.
#[derive(Default)]
struct Scanned {
    found: Vec<Position>,
    looked_at: usize,
    /// The position behind the last one that was looked at; none at the end of the list.
    next: Option<String>,
}

impl SortedSet<'_> {
    /// The members on a page of those that fit, highest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn filtered<K, F>(
        self,
        page: Page<'_>,
        filter: &Filter<'_, K, F>,
    ) -> Result<FilteredPage, StoreError>
    where
        K: Fn(&str) -> String,
        F: Fn(&str, &[Option<String>]) -> bool,
    {
        let (skip, enough, first) = match page.start {
            Start::Offset(offset) => (offset, usize::MAX, Start::Offset(0)),
            Start::After(position) => (0, page.limit, Start::After(position)),
        };
        let mut seen = Scanned::default();
        self.scan_chunk(first, filter, enough, &mut seen).await?;
        while seen.found.len() < enough && seen.looked_at < filter.scanned_max {
            let Some(next) = seen.next.take() else { break };
            self.scan_chunk(Start::After(&next), filter, enough, &mut seen)
                .await?;
        }
        let total = seen.found.len();
        let is_partial = seen.next.is_some();
        let records: Vec<Position> = seen.found.into_iter().skip(skip).take(page.limit).collect();
        let is_cut = total > skip.saturating_add(page.limit);
        let next = match records.last().filter(|_| is_cut) {
            Some(last) => Some(last.position()),
            None => seen.next,
        };
        let part = Part {
            records: records.into_iter().map(|mark| mark.member).collect(),
            total: total as u64,
            next,
        };
        Ok(FilteredPage { part, is_partial })
    }

    /// Looks at the next chunk, up to the one with which `enough` are found.
    async fn scan_chunk<K, F>(
        self,
        start: Start<'_>,
        filter: &Filter<'_, K, F>,
        enough: usize,
        seen: &mut Scanned,
    ) -> Result<(), StoreError>
    where
        K: Fn(&str) -> String,
        F: Fn(&str, &[Option<String>]) -> bool,
    {
        let limit = CHUNK.min(filter.scanned_max - seen.looked_at);
        let chunk = self.marks(Page { limit, start }).await?;
        seen.next = chunk.next;
        if chunk.records.is_empty() {
            return Ok(());
        }
        let mut look = redis::pipe();
        for mark in &chunk.records {
            look.cmd("HMGET")
                .arg((filter.key)(&mark.member))
                .arg(filter.fields);
        }
        let read: Vec<Vec<Option<String>>> = self.store.pipeline(&look).await?;
        let last = chunk.records.len() - 1;
        for (at, (mark, fields)) in chunk.records.into_iter().zip(read).enumerate() {
            seen.looked_at += 1;
            if !(filter.fits)(&mark.member, &fields) {
                continue;
            }
            if seen.found.len() + 1 == enough && at < last {
                seen.next = Some(mark.position());
            }
            seen.found.push(mark);
            if seen.found.len() == enough {
                break;
            }
        }
        Ok(())
    }
}
