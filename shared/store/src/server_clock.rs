//! The store's clock, which determines all deadlines.

use crate::clock_difference::{THE_STORE, ahead_ms, check};
use crate::{Store, StoreError};

/// Maximum number of cluster nodes that are queried.
const NODES_QUERIED_MAX: usize = 3;

/// Returns the arguments of `script/clock_bound.lua`, in ms: this process's time, and the largest permitted difference
/// from the store's.
pub(crate) fn bound_args<'t>(store: &Store, digits: &'t mut [itoa::Buffer; 2]) -> [&'t [u8]; 2] {
    let [now, difference_max] = digits;
    [
        now.format(clock::now_ms()).as_bytes(),
        difference_max.format(store.clock_difference_max_ms()).as_bytes(),
    ]
}

/// Reads the store's clock, in ms since 1970; on a cluster, that of any node that answers. A worker that archives or
/// reaps reads it at the start of each round, so that it does nothing by a clock that became wrong since the last check
/// of the store.
///
/// # Errors
/// [`StoreError`]; [`StoreError::ClockDiffers`] if it differs too much from this process's.
pub async fn now_ms(store: &Store) -> Result<u64, StoreError> {
    let time = redis::cmd("TIME");
    let mut queried = 1;
    loop {
        let sent_ms = clock::now_ms();
        match store.command::<(u64, u64)>(&time).await {
            Ok((seconds, micros)) => {
                let now_ms = seconds * 1000 + micros / 1000;
                let ahead_ms = ahead_ms(now_ms, sent_ms, clock::now_ms());
                check(THE_STORE, ahead_ms, store.clock_difference_max_ms())?;
                return Ok(now_ms);
            }
            Err(_) if store.is_cluster() && queried < NODES_QUERIED_MAX => queried += 1,
            Err(error) => return Err(error),
        }
    }
}
