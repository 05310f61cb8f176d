//! Kept holds of one account: calls that were not settled by their deadline and have no later entry. The script that
//! seals the trail writes the index.

use crate::call::hold::Hold;
use crate::call::unsettled_holds::{HoldState, HoldWithState};
use crate::keys::AccountKeys;
use crate::{Store, StoreError};

/// Kept holds of an account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptHolds {
    /// The newest ones, each with the time of its sealed entry.
    pub newest: Vec<HoldWithState>,
    /// The total number. May include a hold that was just settled.
    pub total: u64,
}

/// Reads the newest `most`.
pub async fn newest(store: &Store, account: &AccountKeys, most: usize) -> Result<KeptHolds, StoreError> {
    let index = account.live().audit_kept();
    let mut query = redis::pipe();
    query.cmd("ZCARD").arg(&index);
    query
        .cmd("ZREVRANGE")
        .arg(&index)
        .arg(0)
        .arg(most.saturating_sub(1))
        .arg("WITHSCORES");
    let (total, listed): (u64, Vec<(String, u64)>) = store.pipeline(&query).await?;
    let holds = listed.iter().map(|(id, _)| account.bucket().kept_hold(id));
    let texts: Vec<Option<String>> = store.each("GET", holds).await?;
    let gone = texts.iter().filter(|text| text.is_none()).count() as u64;
    let found = listed.into_iter().zip(texts);
    let newest = found.filter_map(|((id, at_ms), text)| {
        Some(HoldWithState {
            hold: Hold::parse(&id, &text?)?,
            state: HoldState::Kept,
            at_ms,
        })
    });
    Ok(KeptHolds {
        newest: newest.collect(),
        total: total.saturating_sub(gone),
    })
}
