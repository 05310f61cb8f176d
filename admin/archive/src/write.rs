//! Moves the oldest entries of a chain into the archive. First the extent of the segment is claimed in the store, so
//! that all archivers write the same one. Then the segment and its manifest are written and read back; then one script
//! removes the entries, if they are still the oldest. An interrupted attempt leaves objects that the next attempt
//! finds; no entry is lost or stored twice.

use super::segment::{BuiltSegment, Draft};
use crate::handle::{Archive, damaged, failed};
use sha2::{Digest, Sha256};
use store::StoreError;
use store::audit::archive::{ArchivedEntries, RemovalOutcome};
use store::audit::chain::{Chain, ChainHead};
use store::audit::decisions;

/// Number of entries read from the store at once.
const READ_BATCH: u64 = 500;

impl Archive {
    /// Moves one segment of the oldest entries, none after number `last`, at most `entries_max`. Returns the number
    /// removed from the store; 0 if there is nothing to move, or another server moved it.
    ///
    /// # Errors
    /// [`StoreError`], or [`StoreError::ArchiveUnavailable`] if the archive does not accept it. Nothing was removed
    /// from the store then.
    pub async fn move_segment(
        &self,
        chain: &Chain<'_>,
        last: u64,
        entries_max: usize,
    ) -> Result<u64, StoreError> {
        let before = chain.extent().await?.archived;
        let Some(built) = build(chain, before, last, entries_max).await? else {
            return Ok(0);
        };
        let Some(built) = claimed(chain, before, built).await? else {
            return Ok(0);
        };
        self.require_own(chain.store()).await?;
        let (segment_path, manifest_path) = built.descriptor.paths(chain.realm());
        self.settle(&segment_path, &built.segment).await?;
        self.settle(&manifest_path, &built.manifest).await?;
        self.let_go(chain, &built).await
    }

    async fn let_go(&self, chain: &Chain<'_>, built: &BuiltSegment) -> Result<u64, StoreError> {
        let text = serde_json::to_string(&built.descriptor).map_err(failed)?;
        let archived = ArchivedEntries {
            first: built.descriptor.first,
            count: built.descriptor.entries,
            hash: built.hash,
            descriptor: &text,
            text: built.text,
            lists: &built.lists,
        };
        match chain.remove_archived(&archived).await? {
            RemovalOutcome::Done => Ok(built.descriptor.entries),
            RemovalOutcome::Moved => Ok(0),
            RemovalOutcome::Disagrees(key) => Err(StoreError::unexpected(format!(
                "hashes or indexes of the audit trail were changed by hand: {key}"
            ))),
        }
    }

    /// Puts `bytes` under `path`, unless they are there. Different existing bytes (after a restore, or by another
    /// compressor) are kept under a second name.
    ///
    /// # Errors
    /// [`StoreError::ArchiveUnavailable`]; the object may be there all the same.
    pub async fn settle(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        match self.location().get(path).await? {
            Some(there) if there == bytes => return Ok(()),
            Some(there) => {
                let hash = hex::encode(Sha256::digest(&there));
                let aside = format!("{path}.replaced-{}", &hash[..8]);
                tracing::warn!(path, aside, "something else is in the archive; it is kept beside");
                self.location().put(&aside, there.to_vec()).await?;
            }
            None => {}
        }
        self.location().put(path, bytes.to_vec()).await?;
        match self.location().get(path).await? {
            Some(there) if there == bytes => Ok(()),
            _ => Err(damaged(path, "what was written is not what is read")),
        }
    }

    /// Removes the look-ups of archived decisions, from where the last attempt ended.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry.
    pub async fn forget_decisions(&self, chain: &Chain<'_>, forgotten: u64) -> Result<(), StoreError> {
        let segments = self.segments(chain).await?;
        let first = segments.partition_point(|segment| segment.last <= forgotten);
        for segment in &segments[first..] {
            let manifest = self.manifest(chain.realm(), segment).await?;
            let starts = decisions::archived_starts(&manifest.decisions);
            chain.forget(starts, segment.last).await?;
        }
        Ok(())
    }
}

/// Returns the segment that all archivers write: `built`, or the one that another archiver claimed earlier. `None` if
/// its entries have left the store, or if the claim changes meanwhile.
async fn claimed(
    chain: &Chain<'_>,
    before: ChainHead,
    built: BuiltSegment,
) -> Result<Option<BuiltSegment>, StoreError> {
    let (first, last) = (built.descriptor.first, built.descriptor.last);
    let Some(agreed) = chain.claim_segment(first, last, None).await? else {
        return Ok(None);
    };
    if agreed == last {
        return Ok(Some(built));
    }
    // The other archiver has kept the bounds of a segment; its settings may allow more entries.
    let other = build(chain, before, agreed, usize::MAX).await?;
    if let Some(other) = other.filter(|other| other.descriptor.last == agreed) {
        return Ok(Some(other));
    }
    // A store that lost entries, or another release with other bounds. Nobody else may be able to build it either.
    let agreed = chain.claim_segment(first, last, Some(agreed)).await?;
    Ok(agreed.filter(|agreed| *agreed == last).map(|_| built))
}

/// Builds the segment after `before`; `None` if there are no entries.
async fn build(
    chain: &Chain<'_>,
    before: ChainHead,
    last: u64,
    entries_max: usize,
) -> Result<Option<BuiltSegment>, StoreError> {
    let draft = draft(chain, before, last, entries_max).await?;
    let realm = chain.realm().clone();
    let building = tokio::task::spawn_blocking(move || draft.build(&realm)).await;
    building.map_err(failed)?.map_err(failed)
}

/// Creates the segment after `before`.
async fn draft(
    chain: &Chain<'_>,
    before: ChainHead,
    last: u64,
    entries_max: usize,
) -> Result<Draft, StoreError> {
    let mut draft = Draft::behind(before, entries_max);
    loop {
        let next = draft.next();
        let count = (last + 1).saturating_sub(next).min(READ_BATCH);
        if count == 0 {
            return Ok(draft);
        }
        // Another server archived these entries: its segment has them, and the script will refuse ours.
        let Some((entries, texts)) = chain.measured_live_entries(next, count).await? else {
            return Ok(draft);
        };
        if entries.is_empty() {
            return Ok(draft);
        }
        for (entry, text) in entries.iter().zip(texts) {
            let added = draft.add_measured(entry, text);
            let added = added.ok_or_else(|| StoreError::unexpected("an audit entry"))?;
            if !added {
                return Ok(draft);
            }
        }
    }
}
