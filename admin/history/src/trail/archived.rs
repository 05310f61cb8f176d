//! Reading of archived entries. By their descriptors only the necessary segments are opened: those on the page, and
//! those that contain an end of a time span.

use super::Trail;
use archive::segment::Descriptor;
use domain::entry::Sealed;
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use store::StoreError;
use store::audit::chain::{Backwards, EntryFilter};
use store::audit::decisions;

/// Number of manifests read concurrently.
const AT_ONCE: usize = 8;

impl Trail<'_> {
    /// Counts the matching archived entries up to number `end`; `None` if the store no longer has the
    /// counts, since others were archived meanwhile.
    pub(super) async fn archived_total(
        &self,
        filter: EntryFilter<'_>,
        end: u64,
    ) -> Result<Option<u64>, StoreError> {
        if end == 0 {
            return Ok(Some(0));
        }
        if filter.from_ms.is_none() && filter.to_ms.is_none() {
            let archived = self.chain.archived_count(filter.agent, filter.kind).await?;
            return Ok((archived.last == end).then_some(archived.count));
        }
        let mut total = 0;
        for segment in self.up_to(end).await? {
            total += self.count(&segment, filter).await?;
        }
        Ok(Some(total))
    }

    /// Reads the matching archived entries up to number `end` within `part`, newest first, with their numbers. Also
    /// returns whether there may be older ones.
    pub(super) async fn archived_page(
        &self,
        filter: EntryFilter<'_>,
        end: u64,
        part: Backwards,
    ) -> Result<(Vec<(u64, Sealed)>, bool), StoreError> {
        let mut part = part;
        let mut found = Vec::new();
        let segments = self.up_to(end).await?.into_iter().rev();
        for segment in segments.skip_while(|segment| segment.first >= part.before) {
            if part.count == 0 {
                // No segment is opened only to find out whether a match is left in it.
                match may_match(&segment, filter) {
                    true => return Ok((found, true)),
                    false => continue,
                }
            }
            let matching = self.count(&segment, filter).await?;
            if matching <= part.skip {
                part.skip -= matching;
                continue;
            }
            let opened = self.archive.segment(self.chain.realm(), &segment).await?;
            let (mut entries, more) = opened.matching(filter, part);
            entries.reverse();
            part.count -= entries.len() as u64;
            part.skip = 0;
            found.extend(entries);
            if more {
                return Ok((found, true));
            }
        }
        Ok((found, false))
    }

    /// Reads consecutive archived entries; `None` if `first` is not archived.
    pub(super) async fn archived_row(
        &self,
        first: u64,
        count: u64,
    ) -> Result<Option<Vec<Sealed>>, StoreError> {
        let segments = self.up_to(u64::MAX).await?;
        let place = segments.partition_point(|segment| segment.last < first);
        let Some(segment) = segments.get(place) else {
            return Ok(None);
        };
        let opened = self.archive.segment(self.chain.realm(), segment).await?;
        Ok(Some(opened.from(first, count)))
    }

    /// Returns the numbers of the archived entries that may belong to the decision `id`.
    pub(super) async fn archived_decision(&self, id: &str) -> Result<Vec<u64>, StoreError> {
        let Some(name) = decisions::name(id) else {
            return Ok(Vec::new());
        };
        let mut segments = self.up_to(u64::MAX).await?;
        segments.retain(|segment| segment.may_decide(&name));
        let reads = segments.into_iter().map(|segment| async move {
            let manifest = self.archive.manifest(self.chain.realm(), &segment).await?;
            Ok::<_, StoreError>(manifest.find(id))
        });
        let found: Vec<Vec<u64>> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
        Ok(found.concat())
    }

    /// Counts the matching entries of a segment.
    async fn count(&self, segment: &Arc<Descriptor>, filter: EntryFilter<'_>) -> Result<u64, StoreError> {
        let whole = segment.count(filter.agent, filter.kind);
        match segment.within(filter) {
            Some(true) => Ok(whole),
            Some(false) => Ok(0),
            None if whole == 0 => Ok(0),
            None => {
                let opened = self.archive.segment(self.chain.realm(), segment).await?;
                Ok(opened.count(filter))
            }
        }
    }

    /// Returns the segments up to number `end`, oldest first.
    pub(super) async fn up_to(&self, end: u64) -> Result<Vec<Arc<Descriptor>>, StoreError> {
        let mut segments = self.archive.segments(&self.chain).await?.to_vec();
        segments.retain(|segment| segment.last <= end);
        Ok(segments)
    }
}

pub(super) fn may_match(segment: &Descriptor, filter: EntryFilter<'_>) -> bool {
    segment.count(filter.agent, filter.kind) > 0 && segment.within(filter) != Some(false)
}
