//! The form of a segment: entries of an audit trail in a row, as JSON Lines exactly as they are exported, compressed;
//! and its manifest, which tells what is in it. From both alone a chain is verified offline.

mod draft;
mod opened;

pub use draft::{Built, Draft};
pub use opened::{Segment, decompress};

use domain::chain::GENESIS;
use domain::mode::Mode;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use store::audit::chain::Filter;
use store::audit::decisions;
use store::keys::AccountKeys;

/// The form of manifests.
const VERSION: u32 = 1;

/// What a segment holds, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptor {
    /// The number of its first entry.
    pub first: u64,
    /// The number of its last entry.
    pub last: u64,
    /// How many entries there are.
    pub entries: u64,
    /// The hash of the entry before the first, or `genesis`.
    pub previous_hash: String,
    /// The hash of the last entry.
    pub hash: String,
    /// The SHA-256 of the compressed bytes.
    pub sha256: String,
    /// How many those are.
    pub bytes: u64,
    /// How many bytes the lines have.
    pub content_bytes: u64,
    /// When the oldest entry was written.
    pub from_ms: u64,
    /// When the newest one was.
    pub to_ms: u64,
    /// How many entries are in each list of the index, `<agent or *>/<type or *>`.
    pub counts: BTreeMap<String, u64>,
    /// The first and the last of its decisions in the order of their ids, cut as manifests have them.
    pub decided: Option<(String, String)>,
    /// The SHA-256 of the manifest; nothing in the manifest itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form: 1.
    pub version: u32,
    /// The account.
    pub account: String,
    /// The mode.
    pub mode: String,
    /// What the segment holds.
    pub segment: Descriptor,
    /// Its decisions: records of 19 characters of an id, behind its prefix, and the entry's number in eight digits in
    /// base 32, sorted.
    pub decisions: String,
}

impl Descriptor {
    /// The paths of the segment and of its manifest.
    pub fn paths(&self, account: &str, mode: Mode) -> (String, String) {
        let path = format!("segments/{account}/{mode}/{:012}-{:012}", self.first, self.last);
        (format!("{path}.jsonl.zst"), format!("{path}.json"))
    }

    /// How many of its entries match an agent and a type, at whatever time.
    pub fn count(&self, agent: Option<&str>, kind: Option<&str>) -> u64 {
        match (agent, kind) {
            (None, None) => self.entries,
            (agent, kind) => {
                let name = AccountKeys::audit_count(agent, kind);
                self.counts.get(&name).copied().unwrap_or(0)
            }
        }
    }

    /// Whether all, some (`None`) or no entries lie in the filter's span of time.
    pub fn within(&self, filter: Filter<'_>) -> Option<bool> {
        let (from_ms, to_ms) = (filter.from_ms.unwrap_or(0), filter.to_ms.unwrap_or(u64::MAX));
        if self.from_ms >= from_ms && self.to_ms < to_ms {
            return Some(true);
        }
        (self.to_ms < from_ms || self.from_ms >= to_ms).then_some(false)
    }

    /// Whether the decision, by its name, may be among its entries.
    pub fn may_decide(&self, name: &str) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|(first, last)| first.as_str() <= name && name <= last.as_str())
    }
}

impl Manifest {
    /// The manifest of a segment, with its decisions.
    pub(crate) fn of(account: &str, mode: Mode, descriptor: &Descriptor, decisions: String) -> Self {
        Self {
            version: VERSION,
            account: account.to_owned(),
            mode: mode.as_str().to_owned(),
            segment: Descriptor {
                manifest: String::new(),
                ..descriptor.clone()
            },
            decisions,
        }
    }

    /// The manifest in `bytes`, when it is the one that `descriptor` names, but for how the segment was compressed: of
    /// two archivers with different compressors, the second may have written over what the first one's description is
    /// of. The segment is judged by its entries.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(descriptor: &Descriptor, bytes: &[u8]) -> Result<Self, String> {
        let mut manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no manifest: {error}"))?;
        descriptor.sha256.clone_into(&mut manifest.segment.sha256);
        manifest.segment.bytes = descriptor.bytes;
        let is_archived = |bytes: &[u8]| hex::encode(Sha256::digest(bytes)) == descriptor.manifest;
        let archived = serde_json::to_vec(&manifest).is_ok_and(|archived| is_archived(&archived));
        // What another version wrote may have the form that it had, byte for byte, and not the one that it would have
        // here.
        if !archived && !is_archived(bytes) {
            return Err("its bytes are not those that were archived".to_owned());
        }
        if manifest.version != VERSION {
            return Err(format!(
                "it is of version {}, which is not known",
                manifest.version
            ));
        }
        Ok(manifest)
    }

    /// The numbers of the entries that may be of the decision `id`.
    pub fn find(&self, id: &str) -> Vec<u64> {
        decisions::find_archived(&self.decisions, id)
    }
}

/// The hash that entries name when none is before them.
pub(crate) fn hash_text(hash: Option<[u8; 32]>) -> String {
    hash.map_or_else(|| GENESIS.to_owned(), hex::encode)
}

#[cfg(test)]
mod tests;
