//! `GET /v1/health` (specification §4.4): whether the edge can decide, asked of the store at this moment.

use super::Reply;
use crate::gate::Gate;
use serde::Serialize;
use std::time::Instant;
use utoipa::ToSchema;

/// Whether the edge can decide.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Health)]
pub(crate) struct Body<'a> {
    /// `ok`, or `degraded` when every call is denied.
    #[schema(example = "ok")]
    status: &'static str,
    /// True: without a decision nothing is forwarded.
    fail_closed: bool,
    /// `available` or `unavailable`.
    #[schema(example = "available")]
    decisions: &'static str,
    #[schema(value_type = Vec<String>, example = json!(ENDPOINTS))]
    endpoints: [&'static str; 4],
    /// False: there is no streaming yet.
    #[schema(example = false)]
    streaming: bool,
    /// The host of the provider.
    #[schema(example = "api.openai.com")]
    upstream: &'a str,
    /// How long the store took to answer.
    #[schema(example = 0.412)]
    latency_ms: f64,
}

/// The paths that the edge serves.
pub const ENDPOINTS: [&str; 4] = [
    "/v1/chat/completions",
    "/v1/models",
    "/v1/models/{model}",
    "/v1/health",
];

/// 200 when calls can be decided, 503 when every call is denied. A node of a cluster that is away denies those of its accounts
/// alone.
pub async fn reply(gate: &Gate) -> Reply {
    let started = Instant::now();
    let sane = gate.watch.can_decide_now(gate).await;
    let latency_ms = started.elapsed().as_micros() as f64 / 1000.0;
    let (code, status, decisions) = if sane {
        (200, "ok", "available")
    } else {
        (503, "degraded", "unavailable")
    };
    let upstream = gate.upstream.host();
    let body = Body {
        status,
        fail_closed: true,
        decisions,
        endpoints: ENDPOINTS,
        streaming: false,
        upstream,
        latency_ms,
    };
    Reply::json(code, &body)
}
