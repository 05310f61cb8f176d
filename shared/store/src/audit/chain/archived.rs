//! Archived entries: the data that the store keeps about them, and their removal.

use super::{Chain, ChainHead, to_hash};
use crate::account::ModeField;
use crate::audit::archive;
use crate::audit::archive::{ArchivedEntries, FORGET_BATCH, RemovalOutcome};
use crate::audit::decisions;
use crate::keys::Realm;
use crate::read::{Answers, Read};
use crate::{Store, StoreError};
use domain::entry::Entry;
use domain::period::DAY_MS;

/// Segment descriptors read in one round trip.
const SEGMENTS_AT_ONCE: u64 = 200;

/// The part of a chain that can be archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveBacklog {
    /// Number of the last archived entry.
    pub archived: u64,
    /// Number of the last entry whose decision no longer has a look-up in the store.
    pub forgotten: u64,
    /// Number of the last entry that may be archived: the last sealed one.
    pub movable: u64,
    /// Count of sealed entries in the store.
    pub live: u64,
    /// Time of the oldest line, in ms since 1970.
    pub oldest_ms: Option<u64>,
    /// Bytes of long lines ([`Budget::AuditText`](domain::budget::Budget)).
    pub text: u64,
}

impl ArchiveBacklog {
    /// Count of reads that [`ArchiveBacklog::reads`] returns.
    pub const READS: usize = 4;

    /// Returns the reads that it is made from.
    pub fn reads(realm: &Realm) -> Vec<Read> {
        let bucket = realm.bucket();
        let base = ["seq", "forgotten"].map(str::to_owned);
        let text = ModeField::AuditText.name(realm.mode());
        vec![
            Read::fields(bucket, realm.audit_base(), &base),
            Read::list_length(bucket, realm.audit_hashes()),
            Read::list(bucket, realm.audit(), 0, 1),
            Read::field(bucket, realm.record(), &text),
        ]
    }

    /// Parses the answers; `None` if they are malformed.
    pub fn from_answers(answers: &mut Answers) -> Option<Self> {
        let (archived, forgotten): (Option<u64>, Option<u64>) = answers.read()?;
        let live: u64 = answers.read()?;
        let lines: Vec<Vec<u8>> = answers.read()?;
        // One that is malformed is no reason to keep the trail in the store.
        let text: Option<u64> = answers.read().flatten();
        let archived = archived.unwrap_or(0);
        let oldest = lines
            .first()
            .map(|line| Entry::from_line(archived + 1, line).at_ms);
        Some(Self {
            archived,
            forgotten: forgotten.unwrap_or(0),
            movable: archived + live,
            live,
            oldest_ms: oldest,
            text: text.unwrap_or(0),
        })
    }

    /// Returns whether the oldest entry is at least `days` old.
    pub fn is_older(&self, days: u64, now_ms: u64) -> bool {
        let age_ms = self.oldest_ms.map(|oldest_ms| now_ms.saturating_sub(oldest_ms));
        age_ms.is_some_and(|age_ms| age_ms >= days.saturating_mul(DAY_MS))
    }
}

/// Count of archived entries that match an agent, a type, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchivedCount {
    /// Number of matching entries.
    pub count: u64,
    /// The last archived entry, matching or not.
    pub last: u64,
}

impl<'a> Chain<'a> {
    /// Returns the store of this chain.
    pub const fn store(&self) -> &'a Store {
        self.store
    }

    /// Reads which part of the chain can be archived.
    pub async fn backlog(&self) -> Result<ArchiveBacklog, StoreError> {
        let reads = ArchiveBacklog::reads(&self.realm);
        let mut answers = self.store.many(&reads).await?;
        ArchiveBacklog::from_answers(&mut answers).ok_or_else(|| StoreError::unexpected("an audit chain"))
    }

    /// Reads the last archived entry, and the segment descriptors from index `skip` on, oldest first.
    pub async fn segments(&self, skip: usize) -> Result<(ChainHead, Vec<String>), StoreError> {
        let (bucket, mut segments) = (self.realm.bucket(), Vec::new());
        loop {
            let first = skip + segments.len();
            let reads = [
                Read::fields(bucket, self.realm.audit_base(), &["seq", "hash"]),
                Read::list(
                    bucket,
                    self.realm.audit_segments(),
                    first as u64,
                    SEGMENTS_AT_ONCE,
                ),
            ];
            type Found = ((Option<u64>, Option<Vec<u8>>), Vec<String>);
            let ((seq, hash), piece): Found = self.store.read_atomically(&reads).await?;
            let is_last = (piece.len() as u64) < SEGMENTS_AT_ONCE;
            segments.extend(piece);
            if is_last {
                let hash = hash.map(|hash| to_hash(&hash)).transpose()?;
                let seq = seq.unwrap_or(0);
                return Ok((ChainHead { seq, hash }, segments));
            }
        }
    }

    /// Counts the archived entries that match an agent, a type, or both.
    pub async fn archived_count(
        &self,
        agent: Option<&str>,
        kind: Option<&str>,
    ) -> Result<ArchivedCount, StoreError> {
        let bucket = self.realm.bucket();
        let count = Realm::audit_count(agent, kind);
        let reads = [
            Read::field(bucket, self.realm.audit_base(), "seq"),
            Read::field(bucket, self.realm.audit_archived(), &count),
        ];
        let (last, count): (Option<u64>, Option<u64>) = self.store.read_atomically(&reads).await?;
        let last = last.unwrap_or(0);
        let every = agent.is_none() && kind.is_none();
        let count = if every { last } else { count.unwrap_or(0) };
        Ok(ArchivedCount { count, last })
    }

    /// Finds the number of the first live entry at `at_ms` or later.
    pub async fn first_since(&self, at_ms: u64) -> Result<u64, StoreError> {
        let extent = self.extent().await?;
        let (low, high) = (extent.archived.seq + 1, extent.sealed.seq + 1);
        self.first_at(&extent, at_ms, low, high).await
    }

    /// Agrees with other archivers on the last entry of the segment from entry `first` on: `last`, unless an earlier
    /// claim has another. A claim of `unusable` is replaced. `None` if entry `first` has been archived.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry.
    pub async fn claim_segment(
        &self,
        first: u64,
        last: u64,
        unusable: Option<u64>,
    ) -> Result<Option<u64>, StoreError> {
        archive::claim_segment(self.store, &self.realm, (first, last), unusable).await
    }

    /// Removes the oldest entries, which are in a segment.
    ///
    /// # Errors
    /// [`StoreError`]; the script may have run. Safe to retry.
    pub async fn remove_archived(
        &self,
        archived: &ArchivedEntries<'_>,
    ) -> Result<RemovalOutcome, StoreError> {
        archived.execute(self.store, &self.realm).await
    }

    /// Removes the look-ups of decisions with the key parts `starts`; all entries of these decisions must be archived.
    /// Afterwards no entry up to `done` has a look-up.
    /// Safe to retry.
    pub async fn forget<'s>(
        &self,
        starts: impl IntoIterator<Item = &'s str>,
        done: u64,
    ) -> Result<u64, StoreError> {
        let keys: Vec<String> = starts
            .into_iter()
            .map(|start| self.realm.audit_decisions(start))
            .collect();
        let mut gone = 0;
        for keys in keys.chunks(FORGET_BATCH) {
            let mut query = redis::pipe();
            query.cmd("HGET").arg(self.realm.audit_base()).arg("seq");
            query.cmd("MGET").arg(keys);
            let (last, texts): (Option<u64>, Vec<Option<String>>) = self.store.pipeline(&query).await?;
            let last = last.unwrap_or(0);
            let texts: Vec<(String, u64)> = keys
                .iter()
                .zip(texts)
                .filter_map(|(key, text)| Some((key.clone(), text?)))
                .filter(|(_, text)| decisions::newest(text).is_some_and(|newest| newest <= last))
                .map(|(key, text)| (key, text.len() as u64))
                .collect();
            gone += archive::forget(self.store, &self.realm, &texts, 0).await?;
        }
        archive::forget(self.store, &self.realm, &[], done).await?;
        Ok(gone)
    }
}
