//! The format of a segment: consecutive entries of an audit trail, as JSON Lines exactly as exported, compressed; and
//! its manifest with an index. A chain can be verified offline from these two alone.

mod draft;
mod opened;

pub use draft::{BuiltSegment, Draft};
pub use opened::{Segment, decompress};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use store::audit::chain::EntryFilter;
use store::audit::decisions;
use store::keys::Realm;

/// The form of manifests.
const VERSION: u32 = 1;

/// Description of a segment, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptor {
    /// Number of its first entry.
    pub first: u64,
    /// Number of its last entry.
    pub last: u64,
    /// Number of its entries.
    pub entries: u64,
    /// The hash of the entry before the first, or `genesis`.
    pub previous_hash: String,
    /// The hash of the last entry.
    pub hash: String,
    /// The SHA-256 of the compressed bytes.
    pub sha256: String,
    /// Length of the compressed lines, in bytes.
    pub bytes: u64,
    /// Length of the lines, in bytes.
    pub content_bytes: u64,
    /// When the oldest entry was written.
    pub from_ms: u64,
    /// Time of the newest entry, in ms since 1970.
    pub to_ms: u64,
    /// Number of entries in each list of the index, `<agent or *>/<type or *>`.
    pub counts: BTreeMap<String, u64>,
    /// The first and the last of its decision ids, shortened as in manifests.
    pub decided: Option<(String, String)>,
    /// SHA-256 of the manifest; empty in the manifest itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
}

/// Description of an archived segment, stored beside it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form: 1.
    pub version: u32,
    /// Account id, `acct_…`.
    pub account: String,
    /// `live` or `test`.
    pub mode: String,
    /// Description of the segment.
    pub segment: Descriptor,
    /// Its decisions, sorted: records of 19 characters of an id, after its prefix, and the entry's number in eight
    /// digits of base 32.
    pub decisions: String,
}

impl Descriptor {
    /// Returns the paths of the segment and of its manifest.
    pub fn paths(&self, realm: &Realm) -> (String, String) {
        let (account, mode) = (realm.account(), realm.mode());
        let path = format!("segments/{account}/{mode}/{:012}-{:012}", self.first, self.last);
        (format!("{path}.jsonl.zst"), format!("{path}.json"))
    }

    /// Returns the number of its entries with an agent and a type, at any time.
    pub fn count(&self, agent: Option<&str>, kind: Option<&str>) -> u64 {
        match (agent, kind) {
            (None, None) => self.entries,
            (agent, kind) => {
                let name = Realm::audit_count(agent, kind);
                self.counts.get(&name).copied().unwrap_or(0)
            }
        }
    }

    /// Returns whether all, some (`None`) or no entries are in the filter's time span.
    pub fn within(&self, filter: EntryFilter<'_>) -> Option<bool> {
        let (from_ms, to_ms) = (filter.from_ms.unwrap_or(0), filter.to_ms.unwrap_or(u64::MAX));
        if self.from_ms >= from_ms && self.to_ms < to_ms {
            return Some(true);
        }
        (self.to_ms < from_ms || self.from_ms >= to_ms).then_some(false)
    }

    /// Returns whether the decision with this name may be among its entries.
    pub fn may_decide(&self, name: &str) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|(first, last)| first.as_str() <= name && name <= last.as_str())
    }
}

impl Manifest {
    /// The manifest of a segment, with its decisions.
    pub(crate) fn new(realm: &Realm, descriptor: &Descriptor, decisions: String) -> Self {
        Self {
            version: VERSION,
            account: realm.account().to_owned(),
            mode: realm.mode().as_str().to_owned(),
            segment: Descriptor {
                manifest: String::new(),
                ..descriptor.clone()
            },
            decisions,
        }
    }

    /// Returns the manifest in `bytes`, if it is the one that `descriptor` names. The sizes and hashes of the
    /// compressed segment may differ: of two archivers with different compressors, the second may have replaced the
    /// files that the first one described. The segment is judged by its entries.
    ///
    /// # Errors
    /// The fault of the manifest.
    pub fn open(descriptor: &Descriptor, bytes: &[u8]) -> Result<Self, String> {
        let mut manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no manifest: {error}"))?;
        descriptor.sha256.clone_into(&mut manifest.segment.sha256);
        manifest.segment.bytes = descriptor.bytes;
        let is_archived = |bytes: &[u8]| hex::encode(Sha256::digest(bytes)) == descriptor.manifest;
        let archived = serde_json::to_vec(&manifest).is_ok_and(|archived| is_archived(&archived));
        // A manifest of another version may be valid byte for byte although this version would write it differently.
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

    /// Returns whether it describes its segment as `descriptor` does, but for the compression ([`Manifest::open`]).
    pub(crate) fn describes(&self, descriptor: &Descriptor) -> bool {
        self.segment
            == Descriptor {
                manifest: String::new(),
                ..descriptor.clone()
            }
    }

    /// Returns the numbers of the entries that may belong to the decision `id`.
    pub fn find(&self, id: &str) -> Vec<u64> {
        decisions::find_archived(&self.decisions, id)
    }
}

#[cfg(test)]
mod tests;
