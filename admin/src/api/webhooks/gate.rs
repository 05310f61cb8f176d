//! Webhooks are part of the dashboard on some plans only; API keys manage them on every plan (specification "Events",
//! decision D42).

use super::super::upgrade;
use crate::caller::Who;
use crate::problem::{Code, Problem};
use crate::routes::Call;

/// Refuses a session whose account's plan has no webhooks in the dashboard.
///
/// # Errors
/// 403 `PLAN_FEATURE`, with the way up; 503 for a plan that is not known.
pub(super) fn require(call: &Call) -> Result<(), Problem> {
    match call.caller.who {
        Who::Key { .. } => return Ok(()),
        Who::Session { .. } => {}
    }
    let name = &call.caller.plan;
    let plan = call.plan(name)?;
    if plan.webhooks_in_dashboard {
        return Ok(());
    }
    let message =
        format!("The plan `{name}` has no webhooks in the dashboard; API keys manage them on every plan.");
    let mut problem = Problem::new(Code::PlanFeature, message).with("plan", name.as_str());
    // Not always the next plan: one that has them.
    if let Some((upgrade, below)) = call
        .app
        .plans
        .load()
        .way_to(name, |plan| plan.webhooks_in_dashboard)
    {
        problem = problem.with("upgradeTo", upgrade);
        if let Some(url) = upgrade::url(&call.app, below) {
            problem = problem.with("upgradeUrl", url);
        }
    }
    Err(problem)
}
