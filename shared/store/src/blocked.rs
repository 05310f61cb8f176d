//! The blocked addresses as the store keeps them, and a server's copy of them, which it asks at every request.

mod copy;
pub mod script;
mod version;

pub use self::copy::{BlockedCopy, Verdict};
use self::version::Version;
use crate::{Store, StoreError, keys};
use ipnet::IpNet;
use std::collections::HashMap;
use std::time::Duration;

/// Pause between two reads of the list.
pub const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// The field that tells whether the list changed.
const VERSION: &str = "version";

/// A range that is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The range, in its canonical form.
    pub range: IpNet,
    /// Since when.
    pub since_ms: u64,
    /// Why, if that was said.
    pub reason: Option<String>,
}

/// The whole list, IPv4 first, by address.
///
/// # Errors
/// [`StoreError`], also for a malformed entry.
pub async fn list(store: &Store) -> Result<Vec<Blocked>, StoreError> {
    read(store).await.map(|(list, _)| list)
}

/// The list and its version.
async fn read(store: &Store) -> Result<(Vec<Blocked>, Version), StoreError> {
    let mut fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(keys::BLOCKED)).await?;
    let version = Version::from_stored(fields.remove(VERSION));
    let entry = |(range, entry): (String, String)| {
        let (since, reason) = entry.split_once(' ')?;
        Some(Blocked {
            range: range.parse().ok()?,
            since_ms: since.parse().ok()?,
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        })
    };
    let list: Option<Vec<Blocked>> = fields.into_iter().map(entry).collect();
    let mut list = list.ok_or_else(|| StoreError::UnexpectedReply("blocked addresses".to_owned()))?;
    list.sort_by_key(|blocked| blocked.range);
    Ok((list, version))
}

/// The version alone.
async fn read_version(store: &Store) -> Result<Version, StoreError> {
    let command = redis::cmd("HGET").arg(keys::BLOCKED).arg(VERSION).to_owned();
    store.command(&command).await.map(Version::from_stored)
}
