//! Kept holds of one account: calls that were not settled by their deadline and have no later entry. The script that
//! seals the trail writes the index, so entries sealed by an earlier version are not in it.

use crate::call::hold::Hold;
use crate::keys::AccountKeys;
use crate::{Store, StoreError};
use domain::mode::Mode;

/// Returns the newest `most` with the time of their sealed entry, and the count of all. A hold that was just settled
/// may still be counted.
///
/// # Errors
/// [`StoreError`].
pub async fn newest(
    store: &Store,
    account: &AccountKeys,
    most: usize,
) -> Result<(Vec<(Hold, u64)>, u64), StoreError> {
    let index = account.audit_kept(Mode::Live);
    let mut query = redis::pipe();
    query.cmd("ZCARD").arg(&index);
    query
        .cmd("ZREVRANGE")
        .arg(&index)
        .arg(0)
        .arg(most.saturating_sub(1))
        .arg("WITHSCORES");
    let (total, listed): (u64, Vec<(String, u64)>) = store.pipeline(&query).await?;
    if listed.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let mut query = redis::pipe();
    for (id, _) in &listed {
        query.cmd("GET").arg(account.bucket().kept_hold(id));
    }
    let texts: Vec<Option<String>> = store.pipeline(&query).await?;
    let gone = texts.iter().filter(|text| text.is_none()).count() as u64;
    let found = listed.into_iter().zip(texts);
    let holds = found.filter_map(|((id, at_ms), text)| Some((Hold::parse(&id, &text?)?, at_ms)));
    Ok((holds.collect(), total.saturating_sub(gone)))
}
