//! One page of a list of intents, in this order: those that moved to the archive since the previous page and were not
//! listed yet; those in the store; the rest of the archive.

use super::Intents;
use super::position::{ArchivedPosition, IntentsPosition, LivePosition};
use archive::intents::{IntentSegments, IntentsDescriptor};
use std::sync::Arc;
use store::StoreError;
use store::intent::{IntentPage, IntentRecord, IntentTexts};
use store::keys::IntentIndex;
use store::page::{Page, PageStart};

/// Maximum number of segments written since the previous page that are read for one page. A page that ends there may be
/// short.
const DRAINED_MAX: usize = 20;

/// A page under construction.
pub(super) struct IntentListing<'a> {
    intents: &'a Intents<'a>,
    index: IntentIndex<'a>,
    texts: IntentTexts,
    limit: usize,
    segments: &'a IntentSegments,
    records: Vec<IntentRecord>,
}

impl<'a> IntentListing<'a> {
    pub(super) fn new(
        intents: &'a Intents<'a>,
        (index, texts): (IntentIndex<'a>, IntentTexts),
        limit: usize,
        segments: &'a IntentSegments,
    ) -> Self {
        Self {
            intents,
            index,
            texts,
            limit,
            segments,
            records: Vec::with_capacity(limit),
        }
    }

    pub(super) async fn page(mut self, start: PageStart<'_>) -> Result<Page<IntentRecord>, StoreError> {
        let (live, next) = match start {
            PageStart::Offset(offset) => self.take_from_offset(offset as u64).await?,
            PageStart::After(text) => match IntentsPosition::parse(text)? {
                IntentsPosition::Live(live) => self.take_after_live(live).await?,
                IntentsPosition::Archived(archived) => {
                    let live = self.newest(0, 0).await?.total;
                    (live, self.take_archived(Some(archived)).await?)
                }
            },
        };
        let archived: u64 = self
            .segments
            .iter()
            .map(|segment| segment.count(self.index))
            .sum();
        Ok(Page {
            records: self.records,
            total: live + archived,
            next: next.map(|next| next.text()),
        })
    }

    fn room(&self) -> usize {
        self.limit - self.records.len()
    }

    fn archived(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.last)
    }

    async fn newest(&self, offset: u64, limit: usize) -> Result<IntentPage, StoreError> {
        IntentRecord::newest(
            self.intents.store,
            &self.intents.realm,
            (self.index, self.texts),
            (offset, limit as u64),
        )
        .await
    }

    /// Adds intents from an offset on. Returns their number in the store, and the end of the page.
    async fn take_from_offset(&mut self, offset: u64) -> Result<(u64, Option<IntentsPosition>), StoreError> {
        let listed = self.newest(offset, self.limit).await?;
        let total = listed.total;
        if listed.goes_on {
            let archived = self.archived();
            let next = self.take_live(listed, archived, archived);
            return Ok((total, next));
        }
        self.records.extend(listed.records);
        let from = self.skipped(offset.saturating_sub(total));
        Ok((total, self.take_archived(from).await?))
    }

    /// Like [`take_from_offset`](Self::take_from_offset), after an intent in the store.
    async fn take_after_live(
        &mut self,
        live: LivePosition,
    ) -> Result<(u64, Option<IntentsPosition>), StoreError> {
        let live = match self.drain(live).await? {
            DrainedIntents::All(live) => live,
            DrainedIntents::Some(live) => {
                let total = self.newest(0, 0).await?.total;
                return Ok((total, Some(IntentsPosition::Live(live))));
            }
        };
        let listed = IntentRecord::older(
            self.intents.store,
            &self.intents.realm,
            (self.index, self.texts),
            live.position,
            self.room() as u64,
        )
        .await?;
        let total = listed.total;
        if listed.goes_on {
            let next = match listed.records.is_empty() {
                true => Some(IntentsPosition::Live(live)),
                false => self.take_live(listed, live.archived, live.drained),
            };
            return Ok((total, next));
        }
        self.records.extend(listed.records);
        let mut newest_first = self.segments.iter().rev();
        let from = newest_first.find(|segment| segment.last <= live.archived);
        let from = from.map(|segment| ArchivedPosition {
            first: segment.first,
            skip: 0,
        });
        Ok((total, self.take_archived(from).await?))
    }

    /// Adds intents of the store, which has more after them.
    fn take_live(&mut self, listed: IntentPage, archived: u64, drained: u64) -> Option<IntentsPosition> {
        let last = listed.records.last()?;
        let live = LivePosition {
            position: last.position_in(self.index),
            archived,
            drained,
            skip: 0,
        };
        self.records.extend(listed.records);
        Some(IntentsPosition::Live(live))
    }

    /// Adds the intents that moved to the archive since the previous page, and were positioned after it.
    async fn drain(&mut self, mut live: LivePosition) -> Result<DrainedIntents, StoreError> {
        let fresh: Vec<_> = self
            .segments
            .iter()
            .filter(|segment| segment.first > live.drained)
            .cloned()
            .collect();
        for (at, segment) in fresh.iter().enumerate() {
            if at == DRAINED_MAX || self.room() == 0 {
                return Ok(DrainedIntents::Some(live));
            }
            let listed = self.older_in(segment, live.position).await?;
            let rest = listed
                .into_iter()
                .skip(usize::try_from(live.skip).unwrap_or(usize::MAX));
            let mut rest = rest.peekable();
            while self.room() > 0
                && let Some(record) = rest.next()
            {
                self.records.push(record);
                live.skip += 1;
            }
            if rest.peek().is_some() {
                return Ok(DrainedIntents::Some(live));
            }
            (live.drained, live.skip) = (segment.last, 0);
        }
        Ok(DrainedIntents::All(live))
    }

    /// Returns the intents of a segment that were after a position in the list.
    async fn older_in(
        &self,
        segment: &Arc<IntentsDescriptor>,
        position: u64,
    ) -> Result<Vec<IntentRecord>, StoreError> {
        if segment.count(self.index) == 0 {
            return Ok(Vec::new());
        }
        let opened = self.intents.open(segment).await?;
        let listed = opened.newest(self.index).into_iter();
        let older = listed.filter(|record| record.position_in(self.index) < position);
        Ok(older.cloned().collect())
    }

    /// Returns the position in the archive after its first `skip` intents.
    fn skipped(&self, skip: u64) -> Option<ArchivedPosition> {
        let mut skip = skip;
        for segment in self.segments.iter().rev() {
            let count = segment.count(self.index);
            if skip < count {
                let first = segment.first;
                return Some(ArchivedPosition { first, skip });
            }
            skip -= count;
        }
        None
    }

    /// Adds archived intents from a position on. Returns where the page ended.
    async fn take_archived(
        &mut self,
        from: Option<ArchivedPosition>,
    ) -> Result<Option<IntentsPosition>, StoreError> {
        let Some(from) = from else { return Ok(None) };
        let behind = self.segments.iter().rev();
        let segments = behind.skip_while(|segment| segment.first > from.first);
        for segment in segments.cloned().collect::<Vec<_>>() {
            let first = segment.first;
            let skip = if first == from.first { from.skip } else { 0 };
            if segment.count(self.index) <= skip {
                continue;
            }
            if self.room() == 0 {
                return Ok(Some(IntentsPosition::Archived(ArchivedPosition { first, skip })));
            }
            let opened = self.intents.open(&segment).await?;
            let listed = opened.newest(self.index).into_iter();
            let listed = listed
                .skip(usize::try_from(skip).unwrap_or(usize::MAX))
                .take(self.room());
            let before = self.records.len();
            self.records.extend(listed.cloned());
            let skip = skip + (self.records.len() - before) as u64;
            if skip < segment.count(self.index) {
                return Ok(Some(IntentsPosition::Archived(ArchivedPosition { first, skip })));
            }
        }
        Ok(None)
    }
}

/// Progress through the intents that moved to the archive since the previous page.
enum DrainedIntents {
    All(LivePosition),
    Some(LivePosition),
}
