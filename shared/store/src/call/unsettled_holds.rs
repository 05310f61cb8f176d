//! Finds unsettled holds: open ones, and kept ones (specification, proxy spend ledger).

use crate::call::hold::Hold;
use crate::keys::{AccountKeys, Bucket};
use crate::{Store, StoreError};

domain::words! {
    /// State of an unsettled hold.
    pub enum HoldState {
        /// Within its deadline, or not yet reaped.
        Open = "open",
        /// Reaped: the estimate stays charged until an operator corrects it.
        Kept = "kept",
    }
}

impl HoldState {
    /// Returns the key of the index of these holds.
    pub fn index(self, bucket: Bucket) -> String {
        match self {
            Self::Open => bucket.due(),
            Self::Kept => bucket.kept(),
        }
    }

    /// Returns the key of such a hold.
    pub fn record(self, bucket: Bucket, allow_id: &str) -> String {
        match self {
            Self::Open => bucket.hold(allow_id),
            Self::Kept => bucket.kept_hold(allow_id),
        }
    }
}

/// A hold with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldWithState {
    /// As stored.
    pub hold: Hold,
    /// Open or kept.
    pub state: HoldState,
    /// Deadline of an open hold, or the time at which a hold was kept; in ms since 1970.
    pub at_ms: u64,
}

/// Returns the bucket of one account, or all buckets.
fn buckets(account: Option<&str>) -> Vec<Bucket> {
    match account {
        Some(account) => vec![AccountKeys::new(account).bucket()],
        None => Bucket::all().collect(),
    }
}

/// Reads the text of the hold `allow_id`. Other accounts share the bucket; `None` if the account has no such hold.
pub async fn read_open_text(
    store: &Store,
    account: &str,
    allow_id: &str,
) -> Result<Option<String>, StoreError> {
    let key = AccountKeys::new(account).bucket().hold(allow_id);
    let text: Option<String> = store.command(redis::cmd("GET").arg(key)).await?;
    // The tombstone of a voided call is not a hold.
    Ok(text.filter(|text| text.starts_with("H ")))
}

/// Lists up to `limit` holds, of one account or of all.
pub async fn list(
    store: &Store,
    account: Option<&str>,
    limit: usize,
) -> Result<Vec<HoldWithState>, StoreError> {
    let mut all = Vec::new();
    for bucket in buckets(account) {
        for state in HoldState::ALL {
            let mut range = redis::cmd("ZRANGE");
            range
                .arg(state.index(bucket))
                .arg(0)
                .arg(limit.saturating_sub(1))
                .arg("WITHSCORES");
            let entries: Vec<(String, u64)> = store.command(&range).await?;
            for (id, at_ms) in entries {
                let found = read(store, bucket, state, &id, at_ms).await?;
                all.extend(
                    found.filter(|found| account.is_none_or(|account| found.hold.name.account == account)),
                );
                if all.len() == limit {
                    return Ok(all);
                }
            }
        }
    }
    Ok(all)
}

/// Finds the hold `allow_id` if it is open or kept.
pub async fn find(
    store: &Store,
    account: Option<&str>,
    allow_id: &str,
) -> Result<Option<HoldWithState>, StoreError> {
    for bucket in buckets(account) {
        for state in HoldState::ALL {
            let mut score = redis::cmd("ZSCORE");
            score.arg(state.index(bucket)).arg(allow_id);
            let at_ms: Option<u64> = store.command(&score).await?;
            if let Some(at_ms) = at_ms {
                return read(store, bucket, state, allow_id, at_ms).await;
            }
        }
    }
    Ok(None)
}

/// Reads a hold; `None` if it ended after its index was read.
async fn read(
    store: &Store,
    bucket: Bucket,
    state: HoldState,
    id: &str,
    at_ms: u64,
) -> Result<Option<HoldWithState>, StoreError> {
    let text: Option<String> = store
        .command(redis::cmd("GET").arg(state.record(bucket, id)))
        .await?;
    let hold = text.and_then(|text| Hold::parse(id, &text));
    Ok(hold.map(|hold| HoldWithState { hold, state, at_ms }))
}
