//! Moves old intents into the archive: settled or blocked ones whose escrow, if any, holds no money. First the segment
//! is written and read back; then one script removes all its intents. Intents that must stay do not block others: each
//! step continues after those that the previous step examined.

use super::segment::BuiltIntents;
use crate::handle::Archive;
use domain::intent::{IntentKind, IntentState};
use std::collections::{HashMap, HashSet};
use store::escrow::{Escrow, EscrowStatus};
use store::intent::archive::{ArchivedIntents, INTENTS_MAX, PASSED_MAX};
use store::intent::{IntentRecord, is_claim};
use store::keys::Realm;
use store::{Store, StoreError};

/// Number of intents read at once: the first read, and later ones. The first few mostly show that none is old.
const READ_FIRST: usize = 8;
const READ_BATCH: usize = 200;
/// Maximum number of intents checked in one step.
const SCANNED_MAX: usize = 2_000;
/// Maximum number of intents far behind others in a list that one step accepts as found: finding one reads all elements
/// before it.
const TOO_FAR_MAX: usize = 4;
/// Maximum number of bytes of lines in one segment.
const CONTENT_MAX: usize = 16 << 20;

/// When intents move.
#[derive(Debug, Clone, Copy)]
pub struct Age {
    /// The store's clock.
    pub now_ms: u64,
    /// Intents that have not changed for this long may be moved.
    pub after_ms: u64,
    /// Such intents are moved when they fill a segment, or when one has waited this long.
    pub gather_ms: u64,
}

type IntentFields = HashMap<String, String>;

/// Intents for a segment.
#[derive(Debug, Default)]
struct ChosenIntents {
    records: Vec<(IntentRecord, IntentFields)>,
    ids: HashSet<String>,
    content: usize,
    /// List elements that the script passes to remove them.
    passed: usize,
    /// Number of intents that were found too far behind others.
    too_far: usize,
    is_full: bool,
    /// Read escrows by number: whether each still holds money.
    open: HashMap<u64, bool>,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Number of intents removed from the store; 0 if there is nothing to move, or another server moved it.
    pub intents: u64,
    /// Number of oldest intents that the next step skips, since they must stay. 0 to start again.
    pub next: usize,
}

impl Archive {
    /// Moves one segment of the oldest movable intents, after the first `from`, which were checked before.
    ///
    /// # Errors
    /// [`StoreError`], or [`StoreError::ArchiveUnavailable`] if the archive does not accept it. Nothing was removed
    /// from the store then.
    pub async fn move_intents(
        &self,
        store: &Store,
        realm: &Realm,
        age: Age,
        from: usize,
    ) -> Result<Moved, StoreError> {
        let (chosen, next) = choose(store, realm, age, from).await?;
        if !chosen.is_due(age) {
            return Ok(Moved { intents: 0, next });
        }
        let segments = self.intent_segments(store, realm).await?;
        let before = segments.last().map_or(0, |last| last.last);
        let failed = |error: String| StoreError::Archive(error);
        let (owned, records) = (realm.clone(), chosen.records);
        let building = tokio::task::spawn_blocking(move || {
            let built = BuiltIntents::from_records(&owned, before, &records);
            (built, records)
        });
        let (built, records) = building.await.map_err(|error| failed(error.to_string()))?;
        let built = built.map_err(|error| failed(error.to_string()))?;
        self.require_own(store).await?;
        let (segment_path, manifest_path) = built.descriptor.paths(realm);
        self.settle(&segment_path, &built.segment).await?;
        self.settle(&manifest_path, &built.manifest).await?;
        let descriptor = serde_json::to_string(&built.descriptor);
        let intents: Vec<IntentRecord> = records.into_iter().map(|(record, _)| record).collect();
        let archived = ArchivedIntents {
            segments: segments.len(),
            descriptor: &descriptor.map_err(|error| failed(error.to_string()))?,
            intents: &intents,
        };
        match archived.execute(store, realm).await? {
            // Later intents have moved up.
            true => Ok(Moved {
                intents: intents.len() as u64,
                next: next.saturating_sub(intents.len()),
            }),
            false => Ok(Moved {
                intents: 0,
                next: from,
            }),
        }
    }
}

/// Chooses the oldest movable intents after the first `from`. Also returns the number that the next step skips.
async fn choose(
    store: &Store,
    realm: &Realm,
    age: Age,
    from: usize,
) -> Result<(ChosenIntents, usize), StoreError> {
    let mut chosen = ChosenIntents::default();
    let (mut skip, mut count) = (from, READ_FIRST);
    while skip < from + SCANNED_MAX {
        let read = IntentRecord::oldest(store, realm, (skip, count)).await?;
        let last = read.len() < count;
        for (at, (id, fields)) in (skip + 1..).zip(read) {
            // A malformed record stays, so that `ledger check` reports it.
            let record = match IntentRecord::from_fields(&fields) {
                Some(record) if record.id == id && !is_claim(&fields) => record,
                _ => continue,
            };
            if !age.is_old(record.at_ms) {
                return Ok((chosen, 0)); // all later ones must stay too
            }
            if age.is_old(record.updated_at_ms()) && chosen.is_movable(store, &record).await? {
                let passed = record.passed(store, realm, PASSED_MAX).await?;
                match chosen.add(record, fields, passed) {
                    AddOutcome::HasSpace => {}
                    AddOutcome::Full => return Ok((chosen, at)),
                    AddOutcome::Exceeded => return Ok((chosen, at - 1)),
                }
            }
        }
        if last {
            return Ok((chosen, 0));
        }
        (skip, count) = (skip + count, READ_BATCH);
    }
    Ok((chosen, skip))
}

/// Answer of a segment to one more intent: it takes further ones, or it is full.
enum AddOutcome {
    /// It takes another one.
    HasSpace,
    /// This was the last one.
    Full,
    /// The intent was not added, since it would exceed a bound.
    Exceeded,
}

impl Age {
    const fn is_old(self, at_ms: u64) -> bool {
        at_ms.saturating_add(self.after_ms) <= self.now_ms
    }
}

impl ChosenIntents {
    /// Returns whether the intent is final and none of its escrow's money waits.
    async fn is_movable(&mut self, store: &Store, record: &IntentRecord) -> Result<bool, StoreError> {
        if record.state == IntentState::PendingApproval
            || matches!(record.kind, IntentKind::Transfer | IntentKind::Deposit)
        {
            return Ok(false);
        }
        let Some(number) = record.escrow else {
            return Ok(true);
        };
        if let Some(open) = self.open.get(&number) {
            return Ok(!open);
        }
        // An escrow that was never funded holds no money, however long it waits; a missing one is reported by `ledger
        // check`.
        let escrow = Escrow::read(store, number).await?;
        let open = escrow
            .is_none_or(|escrow| matches!(escrow.status, EscrowStatus::Funded | EscrowStatus::Disputed));
        self.open.insert(number, open);
        Ok(!open)
    }

    /// Adds an intent with `passed` others before it in its lists, unless there is no room. An intent with too many
    /// others before it stays until those have been removed.
    fn add(&mut self, record: IntentRecord, fields: IntentFields, passed: Option<usize>) -> AddOutcome {
        let Some(passed) = passed else {
            self.too_far += 1;
            return if self.too_far < TOO_FAR_MAX {
                AddOutcome::HasSpace
            } else {
                AddOutcome::Full
            };
        };
        let length: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        let is_too_much = self.content + length > CONTENT_MAX || self.passed + passed > PASSED_MAX;
        if is_too_much && !self.records.is_empty() {
            self.is_full = true;
            return AddOutcome::Exceeded;
        }
        if self.ids.insert(record.id.clone()) {
            self.content += length;
            self.passed += passed;
            self.records.push((record, fields));
        }
        self.is_full = self.records.len() == INTENTS_MAX;
        match self.is_full {
            true => AddOutcome::Full,
            false => AddOutcome::HasSpace,
        }
    }

    fn is_due(&self, age: Age) -> bool {
        let full = self.is_full || self.content > CONTENT_MAX / 2;
        let oldest = self
            .records
            .iter()
            .map(|(record, _)| record.updated_at_ms())
            .min();
        let waited = Age {
            after_ms: age.after_ms.saturating_add(age.gather_ms),
            ..age
        };
        full || oldest.is_some_and(|oldest| waited.is_old(oldest))
    }
}
