//! Seals an account's trail before its statistics are read, which are added up while it is sealed.

use crate::state::Call;
use endpoint::problem::Problem;
use store::StoreError;
use store::audit::chain::Chain;
use telemetry::error_chain;

/// Batches of some hundred entries that a reader of statistics seals at most; of a longer backlog it says that it is
/// one.
const BATCHES_MAX: usize = 40;

/// Seals what has happened until now, so that it is in the statistics; false when some of it is not: a long backlog, or
/// a trail that was changed by hand, which must not hide everything else.
///
/// # Errors
/// 503 when the store does not answer.
pub(super) async fn catch_up(call: &Call) -> Result<bool, Problem> {
    let (account, mode) = (&call.caller.account, call.caller.mode);
    let trail = Chain::new(&call.state.store, account, mode);
    let goal = trail.count().await?.lines;
    match trail.seal_some(BATCHES_MAX).await {
        Ok(sealed) => Ok(sealed.end.seq >= goal),
        Err(error @ StoreError::UnexpectedReply(_)) => {
            tracing::warn!(account, %mode, error = %error_chain(&error), "statistics end where the trail cannot be sealed");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
