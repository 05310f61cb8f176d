//! Refusal of an account whose version in the store is older than this process has seen (decision D47).

use super::lost_writes;
use crate::problem::Problem;
use store::Store;
use store::versions::AccountVersion;

/// Records `view`, unless it is older than `floor`, which was seen before the view was read.
///
/// # Errors
/// 503 for an account that lost writes.
pub fn require_no_loss(
    store: &Store,
    account: &str,
    view: AccountVersion,
    floor: AccountVersion,
) -> Result<(), Problem> {
    if view < floor {
        return Err(lost_writes(account));
    }
    store.versions().record(account, view);
    Ok(())
}
