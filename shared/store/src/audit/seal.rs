//! Twin of `seal.lua`: stores the hashes of a batch of audit entries, indexes them, and adds them to the statistics of
//! their days.

use crate::audit::decisions;
use crate::audit::statistics::AGENTS_MAX;
use crate::audit::tally::Tally;
use crate::call::reap::KEPT_LIFE;
use crate::keys::Realm;
use crate::script::script;
use crate::{Store, StoreError};
use domain::entry::Entry;
use domain::statistics::late_day;
use std::collections::BTreeMap;
use std::time::Duration;

script! {
    /// Seals a batch of entries. Runs on a full store, since only sealed entries can be archived.
    pub static SEAL = "seal",
    kind: Timeless,
    source: [include_str!("seal.lua")],
    when_full: Run,
    /// `indexes` are days, then lists of numbers, then texts of decisions.
    keys: struct SealKeys: String { audit_log, hashes, base, kept, indexes[..] },
    /// `kept_memory` is in ms. `words` are the additions to the days, the hashes, then the additions to the lists and
    /// texts.
    args: struct SealArgs: Vec<u8> { first, before, count, lists, days, agents_max, kept_memory, words[..] },
}

/// Maximum number of entries that one execution seals.
pub const SEAL_BATCH: u64 = 500;

/// Time for which a kept hold is remembered after its entry: slightly longer than it can be corrected.
const KEPT_MEMORY: Duration = Duration::from_secs(KEPT_LIFE.as_secs() + 24 * 3600);

/// Consecutive entries with their hashes.
#[derive(Debug)]
pub struct HashedEntries {
    /// Hash of the entry before the first; `None` for the genesis.
    pub before: Option<[u8; 32]>,
    /// Entries and hashes, 1 to [`SEAL_BATCH`].
    pub entries: Vec<(Entry, [u8; 32])>,
}

domain::words! {
    /// Outcome of the script.
    pub enum SealedBatch {
        /// The hashes are stored.
        Done = "sealed",
        /// Another sealer was faster; nothing changed. Read the extent again.
        Moved = "moved",
        /// The stored chain does not end with the batch's `before`; nothing changed.
        Disagrees = "disagree",
    }
}

impl HashedEntries {
    /// Executes the script.
    ///
    /// # Errors
    /// [`StoreError`]; the batch may be sealed. Safe to retry.
    pub async fn execute(&self, store: &Store, realm: &Realm) -> Result<SealedBatch, StoreError> {
        let Some((first, _)) = self.entries.first() else {
            return Ok(SealedBatch::Done);
        };
        let (lists, texts) = self.indexes(realm);
        let tally = Tally::from_entries(self.entries.iter().map(|(entry, _)| entry));
        let days = tally.days().map(|day| realm.audit_day(day));
        let keys = SealKeys {
            audit_log: realm.audit(),
            hashes: realm.audit_hashes(),
            base: realm.audit_base(),
            kept: realm.audit_kept(),
            indexes: days.chain(lists.keys().chain(texts.keys()).cloned()).collect(),
        };
        let mut words: Vec<Vec<u8>> = tally.words().into_iter().map(String::into_bytes).collect();
        words.extend(self.entries.iter().map(|(_, hash)| Vec::from(*hash)));
        for numbers in lists.values() {
            words.push(numbers.len().to_string().into());
            words.extend(numbers.iter().map(|number| number.to_string().into()));
        }
        words.extend(texts.into_values().map(String::into_bytes));
        let args = SealArgs {
            first: first.seq.to_string().into(),
            before: self.before.map(Vec::from).unwrap_or_default(),
            count: self.entries.len().to_string().into(),
            lists: lists.len().to_string().into(),
            days: tally.days().len().to_string().into(),
            agents_max: AGENTS_MAX.to_string().into(),
            kept_memory: KEPT_MEMORY.as_millis().to_string().into(),
            words,
        };
        let mut reply = store.reply(&SEAL, keys, args).await?;
        reply.parsed(SealedBatch::parse)
    }

    /// Returns the entry numbers for each index list, and the packed text for each key of decisions.
    fn indexes(&self, realm: &Realm) -> (BTreeMap<String, Vec<u64>>, BTreeMap<String, String>) {
        let mut lists: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for (entry, _) in &self.entries {
            for (agent, kind) in entry.indexes() {
                let list = realm.audit_index(agent, kind);
                lists.entry(list).or_default().push(entry.seq);
            }
            if let Some(day) = late_day(entry) {
                let list = realm.audit_late(day);
                lists.entry(list).or_default().push(entry.seq);
            }
            if let Some((start, record)) = decisions::record(entry.decision_id(), entry.seq) {
                let key = realm.audit_decisions(start);
                texts.entry(key).or_default().push_str(&record);
            }
        }
        (lists, texts)
    }
}
