//! Refusal of an account of which the store has less than this process has seen (decision D47).

use super::lost_writes;
use crate::problem::Problem;
use store::Store;
use store::versions::AccountVersion;

/// Remembers `view`, unless it shows less than `floor`, which was seen before it was read.
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
