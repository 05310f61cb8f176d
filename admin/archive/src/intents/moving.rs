//! Moving old intents into the archive: those that are settled or blocked, and whose escrow, if they are about one,
//! holds no money. First the segment is written and read again; then one script removes all its intents. Those that
//! have to stay block no others: each step continues behind those that the step before has examined.

use super::segment::Built;
use crate::handle::Archive;
use domain::intent::{Kind, State};
use domain::mode::Mode;
use std::collections::{HashMap, HashSet};
use store::escrow::{Escrow, EscrowStatus};
use store::intent::archive::{ArchivedIntents, INTENTS_MAX, PASSED_MAX};
use store::intent::{IntentRecord, is_claim};
use store::keys::AccountKeys;
use store::{Store, StoreError};

/// Intents read in one go, the first time and later: mostly the first few show that none is old.
const READ_FIRST: usize = 8;
const READ_BATCH: usize = 200;
/// Intents that are checked in one step.
const SCANNED_MAX: usize = 2_000;
/// Intents too far behind others in a list that one step finds at most: to find one, that many places are read.
const TOO_FAR_MAX: usize = 4;
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
    /// Places of lists that the script passes to take them out.
    passed: usize,
    /// Intents that were found too far behind others.
    too_far: usize,
    /// Whether there is no room for more.
    is_full: bool,
    /// Whether each escrow that was read holds money.
    open: HashMap<u64, bool>,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Intents that left the store: none when there is nothing to move, or another server moved it.
    pub intents: u64,
    /// Intents, the oldest ones, that the next step passes by: they have to stay. 0 when it begins anew.
    pub next: usize,
}

impl Archive {
    /// Moves one segment of the oldest intents that may go, behind the first `from`, which were checked before.
    ///
    /// # Errors
    /// [`StoreError`], [`StoreError::Archive`] when the archive does not take it. Nothing left the store then.
    pub async fn move_intents(
        &self,
        store: &Store,
        (account, mode): (&str, Mode),
        age: Age,
        from: usize,
    ) -> Result<Moved, StoreError> {
        let keys = AccountKeys::new(account);
        let (chosen, next) = choose(store, &keys, mode, age, from).await?;
        if !chosen.is_due(age) {
            return Ok(Moved { intents: 0, next });
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
        match archived.execute(store, &keys, mode).await? {
            // Those behind them have moved up.
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

/// The oldest intents that may go, of those behind the first `from`; and how many the next step passes by.
async fn choose(
    store: &Store,
    keys: &AccountKeys,
    mode: Mode,
    age: Age,
    from: usize,
) -> Result<(Chosen, usize), StoreError> {
    let mut chosen = Chosen::default();
    let (mut skip, mut count) = (from, READ_FIRST);
    while skip < from + SCANNED_MAX {
        let read = IntentRecord::oldest(store, keys, mode, (skip, count)).await?;
        let last = read.len() < count;
        for (at, (id, fields)) in (skip + 1..).zip(read) {
            // What makes no sense stays where it is, for `ledger check` to name.
            let record = match IntentRecord::from_fields(&fields) {
                Some(record) if record.id == id && !is_claim(&fields) => record,
                _ => continue,
            };
            if !age.is_old(record.at_ms) {
                return Ok((chosen, 0)); // and so are all that come behind it
            }
            if age.is_old(record.updated_at_ms()) && chosen.may_go(store, &record).await? {
                let passed = record.passed(store, keys, mode, PASSED_MAX).await?;
                match chosen.add(record, fields, passed) {
                    Room::Left => {}
                    Room::Taken => return Ok((chosen, at)),
                    Room::None => return Ok((chosen, at - 1)),
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

/// Whether there is room for more intents in a segment.
enum Room {
    Left,
    /// The intent took the last place.
    Taken,
    /// The intent was not added.
    None,
}

impl Age {
    const fn is_old(self, at_ms: u64) -> bool {
        at_ms.saturating_add(self.after_ms) <= self.now_ms
    }
}

impl Chosen {
    /// Whether nothing will happen to the intent again, and none of its escrow's money waits.
    async fn may_go(&mut self, store: &Store, record: &IntentRecord) -> Result<bool, StoreError> {
        if record.state == State::PendingApproval || matches!(record.kind, Kind::Transfer | Kind::Deposit) {
            return Ok(false);
        }
        let Some(number) = record.escrow else {
            return Ok(true);
        };
        if let Some(open) = self.open.get(&number) {
            return Ok(!open);
        }
        // One that was never funded holds no money, however long it waits; one that cannot be found is for `ledger
        // check`.
        let escrow = Escrow::read(store, number).await?;
        let open = escrow
            .is_none_or(|escrow| matches!(escrow.status, EscrowStatus::Funded | EscrowStatus::Disputed));
        self.open.insert(number, open);
        Ok(!open)
    }

    /// Adds an intent that stands behind `passed` others in its lists, unless there is no room. One that stands too far
    /// behind them stays until those before it have left.
    fn add(&mut self, record: IntentRecord, fields: Fields, passed: Option<usize>) -> Room {
        let Some(passed) = passed else {
            self.too_far += 1;
            return if self.too_far < TOO_FAR_MAX {
                Room::Left
            } else {
                Room::Taken
            };
        };
        let length: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        let is_too_much = self.content + length > CONTENT_MAX || self.passed + passed > PASSED_MAX;
        if is_too_much && !self.records.is_empty() {
            self.is_full = true;
            return Room::None;
        }
        if self.ids.insert(record.id.clone()) {
            self.content += length;
            self.passed += passed;
            self.records.push((record, fields));
        }
        self.is_full = self.records.len() == INTENTS_MAX;
        match self.is_full {
            true => Room::Taken,
            false => Room::Left,
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
