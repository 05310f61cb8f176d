//! The store's clock, by which all deadlines are written.

use super::{Store, StoreError};

/// Milliseconds since 1970 on the store's clock; on a cluster, on that of any node.
///
/// # Errors
/// [`StoreError`].
pub async fn now_ms(store: &Store) -> Result<u64, StoreError> {
    let (seconds, micros): (u64, u64) = store.command(&redis::cmd("TIME")).await?;
    Ok(seconds * 1000 + micros / 1000)
}
