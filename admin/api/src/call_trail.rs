//! The audit trail of a caller's account and mode.

use crate::state::Call;
use history::trail::Trail;

/// The trail that a call may read.
pub(crate) fn of(call: &Call) -> Trail<'_> {
    let (store, archive) = (&call.state.store, &call.state.archive);
    Trail::of(store, archive, &call.caller.account, call.caller.mode)
}
