//! Seals an account's trail before its statistics are read, since sealing updates the statistics.

use crate::state::Call;
use endpoint::problem::Problem;
use store::StoreError;
use store::audit::chain::Chain;
use telemetry::error_chain;

/// Maximum number of batches, of some hundred entries each, that a reader of statistics seals. A longer backlog is
/// reported.
const BATCHES_MAX: usize = 40;

/// Seals all events until now, so that the statistics include them. Returns false if some are missing: after a long
/// backlog, or if the trail was changed manually, which must not make other data unavailable.
///
/// # Errors
/// 503 if the store does not reply.
pub(super) async fn catch_up(call: &Call) -> Result<bool, Problem> {
    let trail = Chain::new(&call.state.store, call.realm());
    let goal = trail.count().await?.lines;
    match trail.seal_some(BATCHES_MAX).await {
        Ok(sealed) => Ok(sealed.end.seq >= goal),
        Err(error @ (StoreError::UnexpectedReply(_) | StoreError::MalformedData { .. })) => {
            let (account, mode) = (&call.caller.account, call.caller.mode);
            tracing::warn!(account, %mode, error = %error_chain(&error), "statistics end where the trail cannot be sealed");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
