//! The audit trail of an account and mode in the store: lines that scripts append, hashes of sealed lines, and the
//! indexes over them. Sealing runs off the hot path and is confluent: all sealers compute the same hashes.

mod archived;
mod entries;
mod live;

pub use archived::{ArchiveBacklog, ArchivedCount};
pub use live::{Backwards, EntryFilter, LateNumbers, LiveEntries, LiveNumbers, LiveSpan};

use crate::account::ModeField;
use crate::audit::seal::{HashedEntries, SEAL_BATCH, SealedBatch};
use crate::audit::unreadable_lines;
use crate::keys::Realm;
use crate::read::Read;
use crate::{Store, StoreError};
use domain::chain::GENESIS;
use domain::entry::{Entry, Sealed, UNREADABLE, is_of_later_release};
use std::sync::atomic::{AtomicBool, Ordering};

/// Retries of a read while others archive or seal.
const READ_ATTEMPTS: usize = 8;
/// Maximum number of batches sealed in one call of [`Chain::seal`]; the next call seals the rest.
const BATCHES_MAX: usize = 4000;

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainHead {
    /// Count of entries.
    pub seq: u64,
    /// Hash of the last entry; `None` if there is none.
    pub hash: Option<[u8; 32]>,
}

/// Result of sealing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedTo {
    /// Last sealed entry.
    pub end: ChainHead,
    /// Count of entries that this call sealed, and no other sealer.
    pub added: u64,
}

/// Outcome of sealing one batch.
struct BatchSealed {
    extent: Extent,
    /// Count of entries that this call sealed.
    added: u64,
    /// True if the next line can only be sealed by a later release.
    is_last: bool,
}

/// Ends of the archived, the sealed and the written part of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Last archived entry.
    pub archived: ChainHead,
    /// Last sealed entry.
    pub sealed: ChainHead,
    /// Number of the last line.
    pub lines: u64,
}

/// The count of entries from two sources that must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryCount {
    /// Number of lines, including archived ones.
    pub lines: u64,
    /// Number of the last entry in the account's record.
    pub given: u64,
}

/// A handle on one chain.
#[derive(Debug, Clone)]
pub struct Chain<'a> {
    store: &'a Store,
    realm: Realm,
}

impl ChainHead {
    /// Returns the hash as entries contain it.
    pub fn text(&self) -> String {
        self.hash.map_or_else(|| GENESIS.to_owned(), hex::encode)
    }
}

impl<'a> Chain<'a> {
    /// Returns a handle on the chain of a realm.
    pub const fn new(store: &'a Store, realm: Realm) -> Self {
        Self { store, realm }
    }

    /// Returns the account and mode.
    pub const fn realm(&self) -> &Realm {
        &self.realm
    }

    /// Reads the ends of the archived, the sealed and the written part of the chain.
    pub async fn extent(&self) -> Result<Extent, StoreError> {
        let (extent, last) = self.read_extent().await?;
        last.map(|last| to_hash(&last)).transpose()?;
        Ok(extent)
    }

    /// Reads the extent, also if the last hash is malformed, and that hash.
    async fn read_extent(&self) -> Result<(Extent, Option<Vec<u8>>), StoreError> {
        let (bucket, hashes) = (self.realm.bucket(), self.realm.audit_hashes());
        let reads = [
            Read::fields(bucket, self.realm.audit_base(), &["seq", "hash"]),
            Read::list_length(bucket, self.realm.audit()),
            Read::list_length(bucket, &hashes),
            Read::list_item(bucket, &hashes, -1),
        ];
        type Found = ((Option<u64>, Option<Vec<u8>>), u64, u64, Option<Vec<u8>>);
        let ((seq, hash), lines, sealed, last): Found = self.store.read_atomically(&reads).await?;
        let archived = ChainHead {
            seq: seq.unwrap_or(0),
            hash: hash.map(|hash| to_hash(&hash)).transpose()?,
        };
        let hash = last.as_ref().and_then(|hash| to_hash(hash).ok());
        let extent = Extent {
            archived,
            sealed: ChainHead {
                seq: archived.seq + sealed,
                hash: hash.or(archived.hash),
            },
            lines: archived.seq + lines,
        };
        Ok((extent, last))
    }

    /// Returns the first key of the chain whose data is malformed, with its account's record; `None` if there is none
    /// among those that every reader of the chain needs.
    pub async fn malformed_key(&self) -> Result<Option<String>, StoreError> {
        let (bucket, base) = (self.realm.bucket(), self.realm.audit_base());
        let lists = [
            self.realm.audit(),
            self.realm.audit_hashes(),
            self.realm.audit_segments(),
        ];
        let given = ModeField::AuditSeq.name(self.realm.mode());
        let mut reads = vec![
            Read::fields(bucket, &base, &["seq", "hash"]),
            Read::field(bucket, self.realm.record(), &given),
        ];
        reads.extend(lists.iter().map(|list| Read::list_length(bucket, list)));
        let mut answers = self.store.many(&reads).await?;
        let base_is_sound = match answers.read::<(Option<u64>, Option<Vec<u8>>)>() {
            Some((_, hash)) => hash.is_none_or(|hash| to_hash(&hash).is_ok()),
            None => false,
        };
        let record_is_sound = answers.read::<Option<u64>>().is_some();
        let mut malformed = Vec::new();
        malformed.extend((!base_is_sound).then_some(base));
        malformed.extend((!record_is_sound).then(|| format!("{} {given}", self.realm.record())));
        malformed.extend(lists.into_iter().filter(|_| answers.read::<u64>().is_none()));
        Ok(malformed.into_iter().next())
    }

    /// Reads both counts atomically.
    pub async fn count(&self) -> Result<EntryCount, StoreError> {
        let bucket = self.realm.bucket();
        let given = ModeField::AuditSeq.name(self.realm.mode());
        let reads = [
            Read::field(bucket, self.realm.audit_base(), "seq"),
            Read::list_length(bucket, self.realm.audit()),
            Read::field(bucket, self.realm.record(), &given),
        ];
        let (archived, lines, given): (Option<u64>, u64, Option<u64>) =
            self.store.read_atomically(&reads).await?;
        Ok(EntryCount {
            lines: archived.unwrap_or(0) + lines,
            given: given.unwrap_or(0),
        })
    }

    /// Seals all lines written so far, so that a following read returns all of them.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::UnexpectedReply`] if the chain was changed manually.
    pub async fn seal(&self) -> Result<ChainHead, StoreError> {
        Ok(self.seal_some(BATCHES_MAX).await?.end)
    }

    /// Seals all lines up to entry `goal`, also more than one call of [`Chain::seal`] seals. Returns the end, which is
    /// before `goal` only where a line cannot be sealed: it is missing, or a later release wrote it.
    ///
    /// # Errors
    /// As [`Chain::seal`].
    pub async fn seal_until(&self, goal: u64) -> Result<ChainHead, StoreError> {
        until_it_stops(goal, || self.seal()).await
    }

    /// Returns whether a later release wrote the first line that is not sealed.
    pub async fn ends_with_later_release(&self) -> Result<bool, StoreError> {
        let (bucket, extent) = (self.realm.bucket(), self.extent().await?);
        let sealed = extent.sealed.seq - extent.archived.seq;
        let read = Read::list(bucket, self.realm.audit(), sealed, 1);
        let mut answers = self.store.many(&[read]).await?;
        let lines = answers.read::<Vec<Vec<u8>>>().unwrap_or_default();
        Ok(lines.first().is_some_and(|line| is_of_later_release(line)))
    }

    /// Seals at most `batches` batches of some hundred lines each, so that a worker can alternate between chains.
    pub async fn seal_some(&self, batches: usize) -> Result<SealedTo, StoreError> {
        let mut extent = self.extent().await?;
        let goal = extent.lines;
        let mut added = 0;
        for _ in 0..batches {
            if extent.sealed.seq >= goal {
                break;
            }
            let batch = self.seal_batch(extent).await?;
            extent = batch.extent;
            added += batch.added;
            if batch.is_last {
                break;
            }
        }
        let end = extent.sealed;
        Ok(SealedTo { end, added })
    }

    /// Seals a batch after the end of `extent`, up to a line that a later release wrote.
    async fn seal_batch(&self, mut extent: Extent) -> Result<BatchSealed, StoreError> {
        let sealed = extent.sealed.seq - extent.archived.seq;
        // Ranks in the list can be computed from `extent` only while nothing is archived.
        let bucket = self.realm.bucket();
        let reads = [
            Read::field(bucket, self.realm.audit_base(), "seq"),
            Read::list(bucket, self.realm.audit(), sealed, SEAL_BATCH),
        ];
        let (archived, lines): (Option<u64>, Vec<Vec<u8>>) = self.store.read_atomically(&reads).await?;
        if archived.unwrap_or(0) != extent.archived.seq {
            return Ok(BatchSealed {
                extent: self.extent().await?,
                added: 0,
                is_last: false,
            });
        }
        let mut end = extent.sealed;
        let mut entries = Vec::with_capacity(lines.len());
        let mut is_last = false;
        for line in &lines {
            is_last = is_of_later_release(line);
            if is_last {
                warn_of_later_release(&self.realm);
                break;
            }
            let entry = Entry::from_line(end.seq + 1, line);
            let sealed = entry.seal(&end.text()).ok_or_else(no_form)?;
            end = ChainHead {
                seq: end.seq + 1,
                hash: Some(sealed.hash),
            };
            entries.push((entry, sealed.hash));
        }
        let batch = HashedEntries {
            before: extent.sealed.hash,
            entries,
        };
        let mut added = 0;
        match batch.execute(self.store, &self.realm).await? {
            SealedBatch::Done => {
                added = end.seq - extent.sealed.seq;
                report_unreadable(&self.realm, &batch.entries);
                extent.sealed = end;
            }
            SealedBatch::Moved => extent = self.extent().await?,
            SealedBatch::Disagrees => {
                // Another sealer may have run between the two reads. Only a lasting difference is a disagreement.
                let again = self.extent().await?;
                if again == extent {
                    return Err(StoreError::unexpected("the audit chain was changed"));
                }
                extent = again;
            }
        }
        Ok(BatchSealed {
            extent,
            added,
            is_last,
        })
    }
}

/// Calls `seal` until it reaches entry `goal`, or no longer moves the end.
async fn until_it_stops<F>(goal: u64, mut seal: impl FnMut() -> F) -> Result<ChainHead, StoreError>
where
    F: Future<Output = Result<ChainHead, StoreError>>,
{
    let mut end = seal().await?;
    while end.seq < goal {
        let next = seal().await?;
        if next == end {
            break;
        }
        end = next;
    }
    Ok(end)
}

/// Reports the sealed lines that are none.
fn report_unreadable(realm: &Realm, entries: &[(Entry, [u8; 32])]) {
    let mut unreadable = entries.iter().filter(|(entry, _)| entry.kind == UNREADABLE);
    if let Some((first, _)) = unreadable.next() {
        let lines = 1 + unreadable.count() as u64;
        unreadable_lines::sealed(realm, first.seq, lines);
    }
}

/// Warns, once per process, of lines that only a later release can seal.
fn warn_of_later_release(realm: &Realm) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            chain = realm.audit(),
            "audit lines of a later release are left for that release to seal: upgrade this server"
        );
    }
}

fn to_hash(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes
        .try_into()
        .map_err(|_| StoreError::unexpected("a hash of the audit chain"))
}

fn no_form() -> StoreError {
    StoreError::unexpected("an audit entry without a canonical form")
}

/// Pairs entries with their stored hashes, so that a changed line does not match its own. The list ends at a malformed
/// hash or an entry of a later release. Either is an error if it comes first.
fn shown(
    first: u64,
    before: ChainHead,
    lines: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
) -> Result<Vec<Sealed>, StoreError> {
    let mut before = before.text();
    let mut found = Vec::with_capacity(lines.len());
    for ((seq, line), hash) in (first..).zip(lines).zip(hashes) {
        let hash = match to_hash(&hash) {
            Ok(hash) => hash,
            Err(_) if !found.is_empty() => break,
            Err(error) => return Err(error),
        };
        if is_of_later_release(&line) {
            if !found.is_empty() {
                break;
            }
            return Err(StoreError::LaterRelease(format!("audit entry {seq}")));
        }
        let entry = Entry::from_line(seq, &line);
        found.push(entry.shown(&before, hash).ok_or_else(no_form)?);
        before = hex::encode(hash);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end after each call, and the last one for ever.
    async fn sealed(ends: &[u64], goal: u64) -> (u64, usize) {
        let mut calls = 0;
        let seal = || {
            let seq = ends.get(calls).or(ends.last()).copied().unwrap_or(0);
            calls += 1;
            std::future::ready(Ok(ChainHead { seq, hash: None }))
        };
        let end = until_it_stops(goal, seal).await.unwrap();
        (end.seq, calls)
    }

    #[tokio::test]
    async fn a_long_backlog_is_sealed_in_several_calls() {
        assert_eq!(sealed(&[10], 10).await, (10, 1));
        assert_eq!(sealed(&[4, 8, 12], 11).await, (12, 3));
        assert_eq!(sealed(&[4, 8], 11).await, (8, 3), "a line that cannot be sealed");
        assert_eq!(sealed(&[0], 0).await, (0, 1));
    }
}
