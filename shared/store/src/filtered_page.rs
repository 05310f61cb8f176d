//! Reads one page of the members of a listing that match a filter without an index: a bounded scan of their records.
//! Members that were not scanned come on later pages.

use crate::page::{Page, PageRequest, PageStart, ScoredMember, SortedSet};
use crate::{Store, StoreError};
use std::future::Future;

/// Judges members of a listing by their records.
pub(super) trait Judge {
    /// Record that a page contains for a match.
    type Match;
    /// Members judged at a time.
    const CHUNK: usize;

    /// Maximum number of members judged for a page.
    fn scanned_max(&self) -> usize;

    /// Returns the match of each member, in order; `None` for one that does not match.
    fn matches(
        &self,
        members: &[ScoredMember],
    ) -> impl Future<Output = Result<Vec<Option<Self::Match>>, StoreError>> + Send;
}

/// A filter by some fields of each record; a match is the member.
pub(super) struct FieldFilter<'a, K, F> {
    /// The store of the records.
    pub(super) store: &'a Store,
    /// Maximum number of records scanned for a page.
    pub(super) scanned_max: usize,
    /// The key of a member's record.
    pub(super) key: K,
    pub(super) fields: &'a [&'a str],
    /// Returns whether a member with these fields matches.
    pub(super) fits: F,
}

impl<K, F> Judge for FieldFilter<'_, K, F>
where
    K: Fn(&str) -> String + Sync,
    F: Fn(&str, &[Option<String>]) -> bool + Sync,
{
    type Match = String;
    /// They are read in one round trip.
    const CHUNK: usize = 500;

    fn scanned_max(&self) -> usize {
        self.scanned_max
    }

    async fn matches(&self, members: &[ScoredMember]) -> Result<Vec<Option<String>>, StoreError> {
        let fields = members.iter().map(|mark| ((self.key)(&mark.member), self.fields));
        let read: Vec<Vec<Option<String>>> = self.store.each("HMGET", fields).await?;
        let judged = members.iter().zip(read).map(|(mark, fields)| {
            let member = &mark.member;
            (self.fits)(member, &fields).then(|| member.clone())
        });
        Ok(judged.collect())
    }
}

/// A page of matches. Its total counts the matches found for it: in a listing of the store after an offset those among
/// all scanned members, after a position only those on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredPage<T> {
    /// Matches of this page.
    pub part: Page<T>,
    /// True if records remain that were not scanned.
    pub is_partial: bool,
}

/// State of a scan.
struct Scanned<M> {
    /// Matches to leave out before those of the page, and the most on it.
    skip: usize,
    limit: usize,
    /// Matches so far.
    total: usize,
    /// Those on the page.
    found: Vec<M>,
    /// Position of the last one of the page.
    last: Option<String>,
    scanned: usize,
    /// Position after the last scanned member; `None` at the end of the list.
    next: Option<String>,
}

impl SortedSet<'_> {
    /// Returns the page's matches, highest first.
    pub(super) async fn filtered<J: Judge>(
        self,
        page: PageRequest<'_>,
        judge: &J,
    ) -> Result<FilteredPage<J::Match>, StoreError> {
        let (skip, enough, first) = match page.start {
            PageStart::Offset(offset) => (offset, usize::MAX, PageStart::Offset(0)),
            PageStart::After(position) => (0, page.limit, PageStart::After(position)),
        };
        let mut seen = Scanned {
            skip,
            limit: page.limit,
            total: 0,
            found: Vec::new(),
            last: None,
            scanned: 0,
            next: None,
        };
        self.scan_chunk(first, judge, enough, &mut seen).await?;
        while seen.total < enough && seen.scanned < judge.scanned_max() {
            let Some(next) = seen.next.take() else { break };
            self.scan_chunk(PageStart::After(&next), judge, enough, &mut seen)
                .await?;
        }
        let is_partial = seen.next.is_some();
        let is_cut = seen.total > skip.saturating_add(page.limit);
        let part = Page {
            records: seen.found,
            total: seen.total as u64,
            next: seen.last.filter(|_| is_cut).or(seen.next),
        };
        Ok(FilteredPage { part, is_partial })
    }

    /// Scans the next chunk, up to the member that completes the `enough` matches.
    async fn scan_chunk<J: Judge>(
        self,
        start: PageStart<'_>,
        judge: &J,
        enough: usize,
        seen: &mut Scanned<J::Match>,
    ) -> Result<(), StoreError> {
        let limit = J::CHUNK.min(judge.scanned_max() - seen.scanned);
        let chunk = self.marks(PageRequest { limit, start }).await?;
        seen.next = chunk.next;
        if chunk.records.is_empty() {
            return Ok(());
        }
        let judged = judge.matches(&chunk.records).await?;
        let behind = chunk.records.len() - 1;
        for (at, (mark, judged)) in chunk.records.iter().zip(judged).enumerate() {
            seen.scanned += 1;
            let Some(found) = judged else { continue };
            seen.total += 1;
            if seen.total > seen.skip && seen.found.len() < seen.limit {
                seen.found.push(found);
                seen.last = Some(mark.position());
            }
            if seen.total == enough {
                if at < behind {
                    seen.next = Some(mark.position());
                }
                break;
            }
        }
        Ok(())
    }
}
