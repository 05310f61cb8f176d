//! `GET /v1/health` (specification §4.4): whether the edge can decide calls now.

use super::Reply;
use serde::Serialize;
use std::time::Duration;
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
    #[schema(value_type = Vec<String>, example = json!(Offered::default().paths()))]
    endpoints: Vec<&'static str>,
    /// Whether `stream: true` is accepted (`proxy.streaming`).
    #[schema(example = false)]
    streaming: bool,
    /// The host of the provider.
    #[schema(example = "api.openai.com")]
    upstream: &'a str,
    /// How long the store took to answer.
    #[schema(example = 0.412)]
    latency_ms: f64,
}

/// What is switched on beyond the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offered {
    /// `proxy.streaming`
    pub streaming: bool,
    /// `proxy.responses`
    pub responses: bool,
    /// `proxy.embeddings`
    pub embeddings: bool,
}

impl Offered {
    /// Everything is switched on.
    pub const ALL: Self = Self {
        streaming: true,
        responses: true,
        embeddings: true,
    };

    /// The paths that the edge serves.
    #[must_use]
    pub fn paths(self) -> Vec<&'static str> {
        let paths = [
            ("/v1/chat/completions", true),
            ("/v1/responses", self.responses),
            ("/v1/embeddings", self.embeddings),
            ("/v1/models", true),
            ("/v1/models/{model}", true),
            ("/v1/health", true),
        ];
        let served = paths.into_iter().filter(|(_, is_served)| *is_served);
        served.map(|(path, _)| path).collect()
    }
}

/// Builds the answer: 200 if calls can be decided, 503 if every call is denied. A node of a cluster that is away denies
/// only the accounts on it.
pub fn reply(can_decide: bool, offered: Offered, upstream: &str, latency: Duration) -> Reply {
    let (code, status, decisions) = if can_decide {
        (200, "ok", "available")
    } else {
        (503, "degraded", "unavailable")
    };
    let body = Body {
        status,
        fail_closed: true,
        decisions,
        endpoints: offered.paths(),
        streaming: offered.streaming,
        upstream,
        latency_ms: latency.as_micros() as f64 / 1000.0,
    };
    Reply::json(code, &body)
}
