//! Webhooks are part of the dashboard on some plans only; API keys manage them on every plan (specification "Events",
//! decision D42).

use crate::state::Call;
use endpoint::caller::Credential;
use endpoint::problem::{Code, Problem};

/// Refuses a session whose account's plan has no webhooks in the dashboard.
///
/// # Errors
/// 403 `PLAN_FEATURE`, with the upgrade; 503 for an unknown plan.
pub(super) fn require(call: &Call) -> Result<(), Problem> {
    match call.caller.credential {
        Credential::Key { .. } => return Ok(()),
        Credential::Session { .. } => {}
    }
    let name = &call.caller.plan;
    let plan = call.plan(name)?;
    if plan.webhooks_in_dashboard {
        return Ok(());
    }
    let message =
        format!("The plan `{name}` has no webhooks in the dashboard; API keys manage them on every plan.");
    let plans = call.admission.plans.load();
    // The first higher plan that has them, which is not always the next one.
    let up = plans.upgrade_path_to(name, |plan| plan.webhooks_in_dashboard);
    let problem = Problem::new(Code::PlanFeature, message)
        .with("plan", name.as_str())
        .with("upgradeTo", up.map(|(upgrade, _)| upgrade))
        .with("upgradeUrl", up.and_then(|(_, below)| call.upgrade_url(below)));
    Err(problem)
}
