//! Blocked client addresses: the list in the store, and the copy that a server consults at every request.

mod copy;
pub mod script;
mod version;

pub use self::copy::{BlockStatus, BlockedCopy};
use self::version::Version;
use crate::{Store, StoreError, keys};
use ipnet::IpNet;
use std::collections::HashMap;
use std::time::Duration;

/// Pause between two reads of the list.
pub const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// Field with the version of the list.
const VERSION: &str = "version";

/// A blocked range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedRange {
    /// Range, in its canonical form.
    pub range: IpNet,
    /// Time of blocking, in ms since 1970.
    pub since_ms: u64,
    /// The operator's reason.
    pub reason: Option<String>,
}

/// Reads the whole list, IPv4 first, by address.
pub async fn list(store: &Store) -> Result<Vec<BlockedRange>, StoreError> {
    read(store).await.map(|(list, _)| list)
}

async fn read(store: &Store) -> Result<(Vec<BlockedRange>, Version), StoreError> {
    let mut fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(keys::BLOCKED)).await?;
    let version = Version::from_stored(fields.remove(VERSION));
    let entry = |(range, entry): (String, String)| {
        let (since, reason) = entry.split_once(' ')?;
        Some(BlockedRange {
            range: range.parse().ok()?,
            since_ms: since.parse().ok()?,
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
        })
    };
    let list: Option<Vec<BlockedRange>> = fields.into_iter().map(entry).collect();
    let mut list = list.ok_or_else(|| StoreError::unexpected("blocked addresses"))?;
    list.sort_by_key(|blocked| blocked.range);
    Ok((list, version))
}

/// Reads the version alone.
async fn read_version(store: &Store) -> Result<Version, StoreError> {
    let command = redis::cmd("HGET").arg(keys::BLOCKED).arg(VERSION).to_owned();
    store.command(&command).await.map(Version::from_stored)
}
