//! The format of a segment of intents: their records as in the store, one JSON object of texts per line, compressed;
//! and its descriptor.

use crate::segment::decompress;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use store::intent::IntentRecord;
use store::keys::IntentIndex;
use store::keys::Realm;

/// The segments of an account and mode, oldest first.
pub type IntentSegments = Arc<Vec<Arc<IntentsDescriptor>>>;

/// The form of manifests.
const VERSION: u32 = 1;
/// Compression level of the lines.
const LEVEL: i32 = 5;
/// Number of characters of an intent's id in the index: its end, which is random.
const TAIL_CHARS: usize = 10;

/// Description of a segment of intents, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentsDescriptor {
    /// Number of its first intent. Archived intents are numbered from 1.
    pub first: u64,
    /// Number of its last intent.
    pub last: u64,
    /// The SHA-256 of the compressed bytes.
    pub sha256: String,
    /// Length of the compressed lines, in bytes.
    pub bytes: u64,
    /// Length of the lines, in bytes.
    pub content_bytes: u64,
    /// Number of intents by `kind/<kind>`, `agent/<agent>` and `state/<state>`.
    pub counts: BTreeMap<String, u64>,
    /// The last ten characters of every id, sorted.
    pub ids: String,
}

/// The manifest stored together with a segment.
#[derive(Debug, Serialize)]
struct IntentsManifest<'a> {
    version: u32,
    account: &'a str,
    mode: &'a str,
    segment: &'a IntentsDescriptor,
}

/// A segment to be written.
#[derive(Debug)]
pub(super) struct BuiltIntents {
    pub(super) descriptor: IntentsDescriptor,
    pub(super) segment: Vec<u8>,
    pub(super) manifest: Vec<u8>,
}

/// A segment of intents, opened.
#[derive(Debug)]
pub struct IntentSegment {
    records: Vec<IntentRecord>,
    content_bytes: u64,
}

impl IntentsDescriptor {
    /// Returns the paths of the segment and of its manifest. They contain its hash, since concurrent archivers may
    /// choose different intents.
    pub fn paths(&self, realm: &Realm) -> (String, String) {
        let hash = self.sha256.get(..16).unwrap_or_default();
        let (account, mode) = (realm.account(), realm.mode());
        let path = format!(
            "intents/{account}/{mode}/{:012}-{:012}-{hash}",
            self.first, self.last
        );
        (format!("{path}.jsonl.zst"), format!("{path}.json"))
    }

    /// Returns the number of intents in a list.
    pub fn count(&self, index: IntentIndex<'_>) -> u64 {
        match name(index) {
            None => (self.last + 1).saturating_sub(self.first),
            Some(name) => self.counts.get(&name).copied().unwrap_or(0),
        }
    }

    /// Returns whether the intent may be in it.
    pub fn may_hold(&self, id: &str) -> bool {
        let wanted = tail(id).as_bytes();
        let (tails, _) = self.ids.as_bytes().as_chunks::<TAIL_CHARS>();
        tails.binary_search_by(|tail| tail.as_slice().cmp(wanted)).is_ok()
    }

    /// Returns the approximate memory use.
    pub fn weight(&self) -> u64 {
        (self.ids.len() + self.counts.len() * 80 + 300) as u64
    }
}

impl BuiltIntents {
    /// Builds the segment after the one that ends with the intent number `before`. The same records yield the same
    /// bytes.
    ///
    /// # Errors
    /// It cannot be compressed or written as JSON.
    pub(super) fn from_records(
        realm: &Realm,
        before: u64,
        records: &[(IntentRecord, HashMap<String, String>)],
    ) -> std::io::Result<Self> {
        let mut text = String::new();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut tails = Vec::with_capacity(records.len());
        for (record, fields) in records {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            text.push_str(&serde_json::to_string(&sorted)?);
            text.push('\n');
            tails.push(tail(&record.id));
            for index in [
                IntentIndex::Kind(record.kind.as_str()),
                IntentIndex::Agent(&record.agent),
                IntentIndex::State(record.state.as_str()),
            ] {
                *counts.entry(name(index).unwrap_or_default()).or_default() += 1;
            }
        }
        tails.sort_unstable();
        let segment = zstd::encode_all(text.as_bytes(), LEVEL)?;
        let descriptor = IntentsDescriptor {
            first: before + 1,
            last: before + records.len() as u64,
            sha256: hex::encode(Sha256::digest(&segment)),
            bytes: segment.len() as u64,
            content_bytes: text.len() as u64,
            counts,
            ids: tails.concat(),
        };
        let manifest = serde_json::to_vec(&IntentsManifest {
            version: VERSION,
            account: realm.account(),
            mode: realm.mode().as_str(),
            segment: &descriptor,
        })?;
        Ok(Self {
            descriptor,
            segment,
            manifest,
        })
    }
}

impl IntentSegment {
    /// Opens the segment in `bytes`, if it matches `descriptor`.
    ///
    /// # Errors
    /// The fault of the segment.
    pub fn open(descriptor: &IntentsDescriptor, bytes: &[u8]) -> Result<Self, String> {
        if hex::encode(Sha256::digest(bytes)) != descriptor.sha256 {
            return Err("its bytes are not those that were archived".to_owned());
        }
        let text = decompress(bytes, descriptor.content_bytes)?;
        let records = text.lines().map(|line| {
            let fields: Option<HashMap<String, String>> = serde_json::from_str(line).ok();
            IntentRecord::from_fields(&fields?)
        });
        let records: Option<Vec<IntentRecord>> = records.collect();
        let count = descriptor.count(IntentIndex::All);
        let records = records.filter(|records| records.len() as u64 == count);
        Ok(Self {
            records: records.ok_or("its lines are not the intents that were archived")?,
            content_bytes: descriptor.content_bytes,
        })
    }

    /// Returns all records, by creation.
    pub fn records(&self) -> &[IntentRecord] {
        &self.records
    }

    /// Returns the intents of a list, newest first: by creation, or by the time of the change to a state.
    pub fn newest(&self, index: IntentIndex<'_>) -> Vec<&IntentRecord> {
        let listed = |record: &&IntentRecord| match index {
            IntentIndex::All => true,
            IntentIndex::Kind(kind) => record.kind.as_str() == kind,
            IntentIndex::Agent(agent) => record.agent == agent,
            IntentIndex::State(state) => record.state.as_str() == state,
        };
        let mut found: Vec<&IntentRecord> = self.records.iter().filter(listed).collect();
        if matches!(index, IntentIndex::State(_)) {
            found.sort_by_key(|record| record.updated_at_ms());
        }
        found.reverse();
        found
    }

    /// Returns the approximate memory use.
    pub const fn weight(&self) -> u64 {
        self.content_bytes + (self.records.len() * size_of::<IntentRecord>()) as u64
    }
}

/// Returns the name of a list among the counts; `None` for the list of all.
fn name(index: IntentIndex<'_>) -> Option<String> {
    match index {
        IntentIndex::All => None,
        IntentIndex::Kind(kind) => Some(format!("kind/{kind}")),
        IntentIndex::Agent(agent) => Some(format!("agent/{agent}")),
        IntentIndex::State(state) => Some(format!("state/{state}")),
    }
}

fn tail(id: &str) -> &str {
    id.get(id.len().saturating_sub(TAIL_CHARS)..).unwrap_or_default()
}
