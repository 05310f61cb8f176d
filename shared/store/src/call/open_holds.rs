//! Finding holds that nobody settled: open ones, and those that the reaper kept (specification, proxy spend ledger).

use crate::call::hold::Hold;
use crate::keys::{AccountKeys, Bucket};
use crate::{Store, StoreError};

/// Whether a hold still waits for its settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Charged, and within its deadline or not yet reaped.
    Open,
    /// Past its deadline: its estimate stays charged until an operator corrects it.
    Kept,
}

impl State {
    /// The word used in lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Kept => "kept",
        }
    }

    fn index(self, bucket: Bucket) -> String {
        match self {
            Self::Open => bucket.due(),
            Self::Kept => bucket.kept(),
        }
    }

    fn record(self, bucket: Bucket, allow_id: &str) -> String {
        match self {
            Self::Open => bucket.hold(allow_id),
            Self::Kept => bucket.kept_hold(allow_id),
        }
    }
}

/// A hold that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The hold.
    pub hold: Hold,
    /// Open or kept.
    pub state: State,
    /// The deadline of an open hold, or when a kept one was kept.
    pub at_ms: u64,
}

/// Where to look: the buckets of one account, or all.
fn buckets(account: Option<&str>) -> Vec<Bucket> {
    match account {
        Some(account) => vec![AccountKeys::new(account).bucket()],
        None => Bucket::all().collect(),
    }
}

/// The text of the call under way `allow_id` in the account's bucket, which other accounts share; `None` when there is
/// none.
///
/// # Errors
/// [`StoreError`].
pub async fn text(store: &Store, account: &str, allow_id: &str) -> Result<Option<String>, StoreError> {
    let key = AccountKeys::new(account).bucket().hold(allow_id);
    let text: Option<String> = store.command(redis::cmd("GET").arg(key)).await?;
    // The tombstone of a voided call is no hold.
    Ok(text.filter(|text| text.starts_with("H ")))
}

/// Up to `limit` holds, of one account or of all.
///
/// # Errors
/// [`StoreError`].
pub async fn list(store: &Store, account: Option<&str>, limit: usize) -> Result<Vec<Found>, StoreError> {
    let mut all = Vec::new();
    for bucket in buckets(account) {
        for state in [State::Open, State::Kept] {
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

/// The hold `allow_id`, when it is open or kept.
///
/// # Errors
/// [`StoreError`].
pub async fn find(store: &Store, account: Option<&str>, allow_id: &str) -> Result<Option<Found>, StoreError> {
    for bucket in buckets(account) {
        for state in [State::Open, State::Kept] {
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

/// `None` for one that was resolved since its index was read.
async fn read(
    store: &Store,
    bucket: Bucket,
    state: State,
    id: &str,
    at_ms: u64,
) -> Result<Option<Found>, StoreError> {
    let text: Option<String> = store
        .command(redis::cmd("GET").arg(state.record(bucket, id)))
        .await?;
    let hold = text.and_then(|text| Hold::parse(id, &text));
    Ok(hold.map(|hold| Found { hold, state, at_ms }))
}
