//! The way up from a plan, as several answers name it.

use crate::serve::App;
use domain::plan::Plan;

/// Where to get the next plan up; a path is one of this server's.
pub(super) fn url(app: &App, plan: &Plan) -> Option<String> {
    let url = plan.upgrade_url.as_deref()?;
    let base = if url.starts_with('/') {
        app.public_url.as_str()
    } else {
        ""
    };
    Some(format!("{base}{url}"))
}
