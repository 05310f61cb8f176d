//! Signed checkpoints of audit trails: what a trail was at some time, proven by a signature that is kept elsewhere.

use crate::trail::Trail;
use shared::domain::checkpoint::{Checkpoint, hash_of_none, origin};
use shared::domain::entry::Entry;
use shared::domain::mode::Mode;
use shared::store::StoreError;
use shared::store::chain::Head;

/// Where the last checkpoint of a trail is in the archive.
#[must_use]
pub fn path(account: &str, mode: Mode) -> String {
    format!("checkpoints/{account}/{mode}")
}

/// The checkpoint of a trail that ends so.
#[must_use]
pub fn of(account: &str, mode: Mode, head: Head) -> Checkpoint {
    Checkpoint {
        origin: origin(account, mode),
        size: head.seq,
        hash: head.hash.unwrap_or_else(hash_of_none),
    }
}

/// The end that the trail had when it had `size` entries; `None` when it has fewer.
///
/// # Errors
/// [`StoreError`].
pub async fn head_at(trail: &Trail<'_>, size: u64) -> Result<Option<Head>, StoreError> {
    if size == 0 {
        return Ok(Some(Head::default()));
    }
    let entries = trail.read(size).await?;
    let last = entries.first().filter(|entry| {
        let entry = Entry::of_json(&entry.json);
        entry.is_some_and(|entry| entry.seq == size)
    });
    Ok(last.map(|entry| Head {
        seq: size,
        hash: Some(entry.hash),
    }))
}
