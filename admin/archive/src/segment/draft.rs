//! A segment under construction: entries are added until it is full. The same entries yield the same bytes.

use super::opened::{decision, read};
use super::{Descriptor, Manifest};
use domain::entry::{Sealed, indexes};
use domain::timestamp::ms_from_iso;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use store::audit::archive::{LISTS_MAX, ListName};
use store::audit::chain::ChainHead;
use store::audit::decisions;
use store::keys::Realm;

/// Compression level of the lines. Entries resemble each other, and higher levels take much time for little gain.
const LEVEL: i32 = 5;
/// Maximum number of bytes of lines in one segment, since readers load a whole one into memory.
const CONTENT_MAX: usize = 32 << 20;

/// Entries for a segment.
#[derive(Debug)]
pub struct Draft {
    before: ChainHead,
    entries_max: usize,
    entries: usize,
    hash: Option<[u8; 32]>,
    text: String,
    long_text: u64,
    from_ms: u64,
    to_ms: u64,
    lists: BTreeMap<ListName, u64>,
    decisions: Vec<String>,
}

/// A segment with its descriptor and manifest.
#[derive(Debug)]
pub struct BuiltSegment {
    /// Description that the store keeps: ranges of numbers and times, and hashes.
    pub descriptor: Descriptor,
    /// The bytes to store: entries, hashes and index.
    pub segment: Vec<u8>,
    /// The bytes to store: the descriptor, and the records of its decisions.
    pub manifest: Vec<u8>,
    /// Number of entries in each list of the index.
    pub lists: BTreeMap<ListName, u64>,
    /// The hash of the last entry.
    pub hash: [u8; 32],
    /// Sum of the bytes that `add_measured` was given.
    pub text: u64,
}

impl Draft {
    /// Creates a segment for the entries after `before`, at most `entries_max`.
    pub const fn behind(before: ChainHead, entries_max: usize) -> Self {
        Self {
            before,
            entries_max,
            entries: 0,
            hash: None,
            text: String::new(),
            long_text: 0,
            from_ms: u64::MAX,
            to_ms: 0,
            lists: BTreeMap::new(),
            decisions: Vec::new(),
        }
    }

    /// Returns the number of the next entry.
    pub const fn next(&self) -> u64 {
        self.before.seq + self.entries as u64 + 1
    }

    /// Adds the next entry; `false` when it is full. `None` for something else than the next entry.
    pub fn add(&mut self, entry: &Sealed) -> Option<bool> {
        let line = read(&entry.json).filter(|line| line.seq == self.next())?;
        if self.entries == self.entries_max {
            return Some(false);
        }
        let lists: Vec<ListName> = indexes(line.agent_id.as_deref(), &line.kind)
            .map(|(agent, kind)| (agent.map(str::to_owned), kind.map(str::to_owned)))
            .collect();
        let new = lists
            .iter()
            .filter(|list| !self.lists.contains_key(*list))
            .count();
        let too_much =
            self.text.len() + entry.json.len() >= CONTENT_MAX || self.lists.len() + new > LISTS_MAX;
        if too_much && self.entries > 0 {
            return Some(false);
        }
        for list in lists {
            *self.lists.entry(list).or_default() += 1;
        }
        let decision = decision(&line, &entry.json)?;
        let at_ms = ms_from_iso(&line.at)?;
        (self.from_ms, self.to_ms) = (self.from_ms.min(at_ms), self.to_ms.max(at_ms));
        self.decisions.extend(decision);
        self.text.push_str(&entry.json);
        self.text.push('\n');
        self.entries += 1;
        self.hash = Some(entry.hash);
        Some(true)
    }

    /// Adds the next entry like [`add`](Self::add). `text` is the [`long_text`](store::audit::long_text) of its line.
    pub fn add_measured(&mut self, entry: &Sealed, text: u64) -> Option<bool> {
        let is_added = self.add(entry)?;
        self.long_text += if is_added { text } else { 0 };
        Some(is_added)
    }

    /// Builds the segment; `None` if nothing was added.
    ///
    /// # Errors
    /// It cannot be compressed or written as JSON.
    pub fn build(mut self, realm: &Realm) -> std::io::Result<Option<BuiltSegment>> {
        let Some(hash) = self.hash else { return Ok(None) };
        let segment = zstd::encode_all(self.text.as_bytes(), LEVEL)?;
        self.decisions.sort_unstable();
        let name = |record: &String| record.get(..decisions::NAME_CHARS).map(str::to_owned);
        let decided = self.decisions.first().and_then(name);
        let decided = decided.zip(self.decisions.last().and_then(name));
        let counts = self.lists.iter().map(|((agent, kind), count)| {
            let name = Realm::audit_count(agent.as_deref(), kind.as_deref());
            (name, *count)
        });
        let mut descriptor = Descriptor {
            first: self.before.seq + 1,
            last: self.before.seq + self.entries as u64,
            entries: self.entries as u64,
            previous_hash: self.before.text(),
            hash: hex::encode(hash),
            sha256: hex::encode(Sha256::digest(&segment)),
            bytes: segment.len() as u64,
            content_bytes: self.text.len() as u64,
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            counts: counts.collect(),
            decided,
            manifest: String::new(),
        };
        let manifest = Manifest::new(realm, &descriptor, self.decisions.concat());
        let manifest = serde_json::to_vec(&manifest)?;
        descriptor.manifest = hex::encode(Sha256::digest(&manifest));
        Ok(Some(BuiltSegment {
            descriptor,
            segment,
            manifest,
            lists: self.lists,
            hash,
            text: self.long_text,
        }))
    }
}
