//! The audit trail of a caller's account and mode.

use crate::state::Call;
use domain::period::DAY_MS;
use history::trail::Trail;

/// How long after its approval a call is first recorded at the latest to be found by the day that it is charged to. A
/// kept call counts with its correction, whenever that comes.
pub(crate) const LATE_MS: u64 = DAY_MS;

/// The trail that a call may read.
pub(crate) fn of(call: &Call) -> Trail<'_> {
    let (store, archive) = (&call.state.store, &call.state.archive);
    Trail::of(store, archive, &call.caller.account, call.caller.mode)
}
