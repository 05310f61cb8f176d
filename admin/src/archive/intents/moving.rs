//! Moving old intents into the archive: those that are settled or blocked, and whose escrow, if they are about one, has
//! come to its end. First the segment is written and read again; then one script lets go of all its intents.

use super::segment::Built;
use crate::archive::Archive;
use shared::domain::intent::{Kind, State};
use shared::domain::mode::Mode;
use shared::store::escrow::{Escrow, EscrowStatus};
use shared::store::intent::{IntentRecord, is_claim};
use shared::store::keys::AccountKeys;
use shared::store::script::archive_intents::{ArchivedIntents, INTENTS_MAX};
use shared::store::{Store, StoreError};
use std::collections::{HashMap, HashSet};

/// Intents read in one go, the first time and later: mostly the first few show that none is old.
const READ_FIRST: usize = 8;
const READ_BATCH: usize = 200;
/// Intents that are looked at for one segment. So many that have to stay, older than all others, hold the others up.
const LOOKED_AT_MAX: usize = 2_000;
/// Most bytes of lines in one segment.
const CONTENT_MAX: usize = 16 << 20;

/// When intents move.
#[derive(Debug, Clone, Copy)]
pub struct Age {
    /// The store's clock.
    pub now_ms: u64,
    /// Those that have not changed for so long may.
    pub after_ms: u64,
    /// And they do when they fill a segment, or when one of them has waited so long for that.
    pub gather_ms: u64,
}

type Fields = HashMap<String, String>;

/// Intents for a segment.
#[derive(Debug, Default)]
struct Chosen {
    records: Vec<(IntentRecord, Fields)>,
    ids: HashSet<String>,
    content: usize,
    /// Escrows that were looked at, and whether they have come to their end.
    ended: HashMap<u64, bool>,
}

impl Archive {
    /// Moves one segment of the oldest intents that may go; returns how many left the store: none when there is nothing to
    /// do, or somebody else does it.
    ///
    /// # Errors
    /// [`StoreError`], [`StoreError::Archive`] when the archive takes it not. Nothing left the store then.
    pub async fn move_intents(
        &self,
        store: &Store,
        (account, mode): (&str, Mode),
        age: Age,
    ) -> Result<u64, StoreError> {
        let keys = AccountKeys::of(account);
        let chosen = choose(store, &keys, mode, age).await?;
        if !chosen.is_due(age) {
            return Ok(0);
        }
        let segments = self.intent_segments(store, account, mode).await?;
        let before = segments.last().map_or(0, |last| last.last);
        let failed = |error: String| StoreError::Archive(error);
        let (name, records) = (account.to_owned(), chosen.records);
        let building = tokio::task::spawn_blocking(move || {
            let built = Built::of((&name, mode), before, &records);
            (built, records)
        });
        let (built, records) = building.await.map_err(|error| failed(error.to_string()))?;
        let built = built.map_err(|error| failed(error.to_string()))?;
        let (segment_path, manifest_path) = built.descriptor.paths(account, mode);
        self.settle(&segment_path, &built.segment).await?;
        self.settle(&manifest_path, &built.manifest).await?;
        let descriptor = serde_json::to_string(&built.descriptor);
        let intents: Vec<IntentRecord> = records.into_iter().map(|(record, _)| record).collect();
        let archived = ArchivedIntents {
            segments: segments.len(),
            descriptor: &descriptor.map_err(|error| failed(error.to_string()))?,
            intents: &intents,
        };
        match archived.run(store, &keys, mode).await? {
            true => Ok(intents.len() as u64),
            false => Ok(0),
        }
    }
}

/// The oldest intents that may go.
async fn choose(store: &Store, keys: &AccountKeys, mode: Mode, age: Age) -> Result<Chosen, StoreError> {
    let mut chosen = Chosen::default();
    let (mut skip, mut count) = (0, READ_FIRST);
    while skip < LOOKED_AT_MAX {
        let read = IntentRecord::oldest(store, keys, mode, (skip, count)).await?;
        let last = read.len() < count;
        for (id, fields) in read {
            // What makes no sense stays where it is, for `ledger check` to name.
            let record = match IntentRecord::from_fields(&fields) {
                Some(record) if record.id == id && !is_claim(&fields) => record,
                _ => continue,
            };
            if !age.is_old(record.at_ms) {
                return Ok(chosen); // and so are all that come behind it
            }
            if age.is_old(record.updated_at_ms())
                && chosen.may_go(store, &record).await?
                && !chosen.add(record, fields)
            {
                return Ok(chosen);
            }
        }
        if last {
            break;
        }
        (skip, count) = (skip + count, READ_BATCH);
    }
    Ok(chosen)
}

impl Age {
    const fn is_old(self, at_ms: u64) -> bool {
        at_ms.saturating_add(self.after_ms) <= self.now_ms
    }
}

impl Chosen {
    /// Whether nothing will ever happen to the intent again.
    async fn may_go(&mut self, store: &Store, record: &IntentRecord) -> Result<bool, StoreError> {
        if record.state == State::PendingApproval || matches!(record.kind, Kind::Transfer | Kind::Deposit) {
            return Ok(false);
        }
        let Some(number) = record.escrow else {
            return Ok(true);
        };
        if let Some(ended) = self.ended.get(&number) {
            return Ok(*ended);
        }
        let escrow = Escrow::read(store, number).await?;
        let ended = escrow
            .is_some_and(|escrow| matches!(escrow.status, EscrowStatus::Released | EscrowStatus::Refunded));
        self.ended.insert(number, ended);
        Ok(ended)
    }

    /// Adds an intent; `false` when it is full.
    fn add(&mut self, record: IntentRecord, fields: Fields) -> bool {
        let length: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        let full = self.records.len() == INTENTS_MAX || self.content + length > CONTENT_MAX;
        if full && !self.records.is_empty() {
            return false;
        }
        if self.ids.insert(record.id.clone()) {
            self.content += length;
            self.records.push((record, fields));
        }
        self.records.len() < INTENTS_MAX
    }

    fn is_due(&self, age: Age) -> bool {
        let full = self.records.len() == INTENTS_MAX || self.content > CONTENT_MAX / 2;
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
