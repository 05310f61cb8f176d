//! `GET /v1/health` (specification §4.4): whether the edge can decide calls now.

use super::EdgeReply;
use crate::routes::OfferedRoutes;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// Body of `GET /v1/health`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Health)]
pub(crate) struct HealthBody<'a> {
    /// `ok`, or `degraded` when every call is denied.
    #[schema(example = "ok")]
    status: &'static str,
    /// True: without a decision nothing is forwarded.
    fail_closed: bool,
    /// `available` or `unavailable`.
    #[schema(example = "available")]
    decisions: &'static str,
    #[schema(value_type = Vec<String>, example = json!(OfferedRoutes::default().paths()))]
    endpoints: Vec<&'static str>,
    /// True if `stream: true` is accepted (`proxy.streaming`).
    #[schema(example = false)]
    streaming: bool,
    /// The host of the provider.
    #[schema(example = "api.openai.com")]
    upstream: &'a str,
    /// Time that the store took to answer.
    #[schema(example = 0.412)]
    latency_ms: f64,
}

/// Builds the answer: 200 if calls can be decided, 503 if every call is denied. An unreachable cluster node denies only
/// the calls of the accounts on it.
pub fn reply(can_decide: bool, offered: OfferedRoutes, upstream: &str, latency: Duration) -> EdgeReply {
    let (code, status, decisions) = if can_decide {
        (200, "ok", "available")
    } else {
        (503, "degraded", "unavailable")
    };
    let body = HealthBody {
        status,
        fail_closed: true,
        decisions,
        endpoints: offered.paths(),
        streaming: offered.streaming,
        upstream,
        latency_ms: latency.as_micros() as f64 / 1000.0,
    };
    EdgeReply::json(code, &body)
}
