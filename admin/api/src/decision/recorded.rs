//! An entry of a decision in the audit trail, with its hash.

use domain::entry::{Entry, Sealed};
use store::audit::chain::ChainHead;

/// An entry and its hash, as text.
#[derive(Debug)]
pub(super) struct RecordedEntry {
    pub(super) entry: Entry,
    pub(super) hash: String,
}

impl RecordedEntry {
    pub(super) fn from_sealed(sealed: &Sealed) -> Option<Self> {
        let entry = Entry::from_json(&sealed.json)?;
        let head = ChainHead {
            seq: entry.seq,
            hash: Some(sealed.hash),
        };
        Some(Self {
            entry,
            hash: head.text(),
        })
    }
}
