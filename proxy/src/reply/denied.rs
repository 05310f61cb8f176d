//! The answer to a denied call: the same body for every reason (specification "Proxy denial body").

use super::{EdgeReply, names};
use crate::tables::plans::PlanLimits;
use domain::denial::{Denial, RATE_RETRY_AFTER_S};
use domain::money::Nanos;
use domain::plan::Plan;
use http::header::RETRY_AFTER;
use openapi::types as is;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A denial and the contents of its answer.
#[derive(Debug)]
pub struct Denied {
    pub denial: Denial,
    /// Replaces the reason's own message.
    pub message: Option<String>,
    /// Decision id, of the [kind](domain::decision::denial_kind) that matches the denial.
    pub id: String,
    /// True if it has no audit entry of its own: it is counted for a rate window, to whose record the id leads
    /// (decision D70).
    pub is_unrecorded: bool,
    /// Present once the run is known.
    pub run_id: Option<String>,
    /// Present once the estimate is known.
    pub estimate: Option<Nanos>,
    /// The account's plan, for denials that name the plan.
    pub plan: Option<Arc<PlanLimits>>,
}

/// A denial: nothing was forwarded and nothing is charged.
#[derive(Serialize, ToSchema)]
#[schema(as = Denial)]
pub(crate) struct DenialBody<'a> {
    /// False.
    #[schema(example = false)]
    approved: bool,
    #[schema(value_type = is::DenialReason)]
    reason: &'static str,
    #[schema(value_type = is::DecisionId)]
    id: &'a str,
    /// For people.
    #[schema(example = "This call would push the agent over its daily cap. The day ends at 00:00 UTC.")]
    message: &'a str,
    error: DenialError<'a>,
    #[serde(flatten)]
    plan: Option<DenialPlan<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DenialError)]
struct DenialError<'a> {
    #[schema(example = "This call would push the agent over its daily cap. The day ends at 00:00 UTC.")]
    message: &'a str,
    #[schema(example = "service_denied")]
    r#type: &'static str,
    #[schema(value_type = is::DenialReason)]
    code: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DenialPlan)]
struct DenialPlan<'a> {
    /// The account's plan; this and the next three on denials by the plan only.
    #[schema(example = "builder")]
    plan: &'a str,
    /// The limit that was met: keys, agents or USD.
    #[schema(example = "10")]
    limit: String,
    #[schema(example = "startup")]
    upgrade_to: Option<&'a str>,
    #[schema(example = "https://tollgate.example/plan?to=startup")]
    upgrade_url: Option<&'a str>,
}

impl Denied {
    /// Creates a denial with nothing but its reason and its decision id.
    pub const fn new(denial: Denial, id: String) -> Self {
        Self {
            denial,
            message: None,
            id,
            is_unrecorded: false,
            run_id: None,
            estimate: None,
            plan: None,
        }
    }

    /// Builds the answer.
    pub fn reply(&self) -> EdgeReply {
        let Self { denial, id, .. } = self;
        let reason = denial.reason();
        let message = self.message.as_deref().unwrap_or(denial.message());
        let plan = self
            .plan
            .as_ref()
            .filter(|_| denial.names_plan())
            .map(|plan| DenialPlan {
                plan: &plan.name,
                limit: limit_text(*denial, &plan.plan),
                upgrade_to: plan.plan.upgrade_to.as_deref(),
                upgrade_url: plan.upgrade_url.as_deref(),
            });
        let error = DenialError {
            message,
            r#type: "service_denied",
            code: reason,
        };
        let mut reply = EdgeReply::json(
            denial.status(),
            &DenialBody {
                approved: false,
                reason,
                id,
                message,
                error,
                plan,
            },
        );
        reply.set(names::DECISION, "denied");
        reply.set(names::REASON, reason);
        reply.set(names::DECISION_ID, id);
        if let Some(run_id) = &self.run_id {
            reply.set(names::RUN_ID, run_id);
        }
        if let Some(estimate) = self.estimate {
            reply.set(names::ESTIMATED_USD, &estimate.to_string());
        }
        if *denial == Denial::RateLimited {
            reply.set(RETRY_AFTER, &RATE_RETRY_AFTER_S.to_string());
        }
        if !denial.may_retry() {
            reply.set(names::SHOULD_RETRY, "false");
        }
        reply
    }
}

/// Returns the limit that was reached, as a plain number: keys, agents or USD.
fn limit_text(denial: Denial, plan: &Plan) -> String {
    let limit = match denial {
        Denial::PlanKeyLimit => plan.active_virtual_keys.map(|keys| keys.to_string()),
        Denial::PlanAgentLimit => plan.cap_agents_per_month.map(|agents| agents.to_string()),
        _ => plan.tracked_usd_per_month.map(|usd| usd.to_string()),
    };
    limit.unwrap_or_default()
}
