//! The upgrade link of a plan, which several answers contain.

use crate::state::ApiState;
use domain::plan::Plan;

/// Returns the URL for upgrading to the next plan; a relative path belongs to this server.
pub(super) fn url(api: &ApiState, plan: &Plan) -> Option<String> {
    let url = plan.upgrade_url.as_deref()?;
    let base = if url.starts_with('/') {
        api.public_url.as_str()
    } else {
        ""
    };
    Some(format!("{base}{url}"))
}
