//! The store's clock, by which all deadlines are written.

use crate::{Store, StoreError};

/// How many nodes of a cluster are asked.
const NODES_ASKED: usize = 3;

/// Milliseconds since 1970 on the store's clock; on a cluster, on that of any node that answers.
///
/// # Errors
/// [`StoreError`].
pub async fn now_ms(store: &Store) -> Result<u64, StoreError> {
    let time = redis::cmd("TIME");
    let mut asked = 1;
    loop {
        match store.command::<(u64, u64)>(&time).await {
            Ok((seconds, micros)) => return Ok(seconds * 1000 + micros / 1000),
            Err(_) if store.is_cluster() && asked < NODES_ASKED => asked += 1,
            Err(error) => return Err(error),
        }
    }
}
