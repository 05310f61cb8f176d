//! The audit trail of a caller's account and mode.

use crate::state::Call;
use domain::period::DAY_MS;
use history::trail::Trail;

/// Time after the day of its charge within which the trail is searched for a call, in ms. Calls recorded later are
/// found by the lists of their days (shared/domain/src/statistics.rs).
pub(crate) const LATE_MS: u64 = DAY_MS;

/// The trail that a call may read.
pub(crate) fn for_call(call: &Call) -> Trail<'_> {
    Trail::new(&call.state.store, &call.state.archive, call.realm())
}
