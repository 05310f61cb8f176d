//! The store's clock, by which all deadlines are written.

use crate::{Store, StoreError};

/// Most nodes of a cluster that are queried.
const NODES_QUERIED_MAX: usize = 3;

/// Reads the store's clock, in ms since 1970; on a cluster, that of any node that answers.
///
/// # Errors
/// [`StoreError`].
pub async fn now_ms(store: &Store) -> Result<u64, StoreError> {
    let time = redis::cmd("TIME");
    let mut queried = 1;
    loop {
        match store.command::<(u64, u64)>(&time).await {
            Ok((seconds, micros)) => return Ok(seconds * 1000 + micros / 1000),
            Err(_) if store.is_cluster() && queried < NODES_QUERIED_MAX => queried += 1,
            Err(error) => return Err(error),
        }
    }
}
