//! The audit trail of a caller's account and mode.

use crate::state::Call;
use domain::period::DAY_MS;
use history::trail::Trail;

/// How long behind the days that calls are charged to the trail is read for them. Those first recorded later are found
/// by the lists of their days (shared/domain/src/statistics.rs).
pub(crate) const LATE_MS: u64 = DAY_MS;

/// The trail that a call may read.
pub(crate) fn for_call(call: &Call) -> Trail<'_> {
    Trail::new(&call.state.store, &call.state.archive, call.realm())
}
