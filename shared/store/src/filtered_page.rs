//! Reads one page of the members of a listing that match a filter without an index: a bounded scan of their records.
//! Members that were not scanned come on later pages.

use crate::StoreError;
use crate::page::{Page, Part, Position, SortedSet, Start};

/// Records read in one round trip.
const CHUNK: usize = 500;

/// A filter.
pub(super) struct Filter<'a, K, F> {
    /// Maximum number of records scanned for a page.
    pub(super) scanned_max: usize,
    /// The key of a member's record.
    pub(super) key: K,
    /// Fields to read.
    pub(super) fields: &'a [&'a str],
    /// Returns whether a member with these fields matches.
    pub(super) fits: F,
}

/// A page of matches. Its total counts the matches found for it: after an offset those among all scanned members, after
/// a position only those on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredPage<T> {
    /// The page.
    pub part: Part<T>,
    /// Whether some members were not scanned.
    pub is_partial: bool,
}

/// State of a scan.
#[derive(Default)]
struct Scanned {
    found: Vec<Position>,
    scanned: usize,
    /// Position after the last scanned member; `None` at the end of the list.
    next: Option<String>,
}

impl SortedSet<'_> {
    /// Returns the page's matches, highest first.
    pub(super) async fn filtered<K, F>(
        self,
        page: Page<'_>,
        filter: &Filter<'_, K, F>,
    ) -> Result<FilteredPage<String>, StoreError>
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
        while seen.found.len() < enough && seen.scanned < filter.scanned_max {
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

    /// Scans the next chunk, up to the member that completes the `enough` matches.
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
        let limit = CHUNK.min(filter.scanned_max - seen.scanned);
        let chunk = self.marks(Page { limit, start }).await?;
        seen.next = chunk.next;
        if chunk.records.is_empty() {
            return Ok(());
        }
        let members = chunk.records.iter().map(|mark| &mark.member);
        let fields = members.map(|member| ((filter.key)(member), filter.fields));
        let read: Vec<Vec<Option<String>>> = self.store.each("HMGET", fields).await?;
        let last = chunk.records.len() - 1;
        for (at, (mark, fields)) in chunk.records.into_iter().zip(read).enumerate() {
            seen.scanned += 1;
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
