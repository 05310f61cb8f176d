//! A call as shown in lists and exports.

use crate::call_trail;
use crate::decision::BillingView;
use crate::spreadsheet::optional;
use crate::state::Call;
use domain::call_record::CallRecord;
use domain::measured::Billing;
use domain::money::Nanos;
use domain::timestamp::{date_from_day, iso_from_ms};
use endpoint::Problem;
use endpoint::doc::is;
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use store::names::{self, Names};
use utoipa::ToSchema;

/// Displayed data of some calls that is not in their entries: the names of agents and virtual keys, and the hashes.
pub(super) struct CallNames {
    agents: Names,
    keys: Names,
    hashes: HashMap<u64, [u8; 32]>,
}

impl CallNames {
    /// Reads the names.
    ///
    /// # Errors
    /// 503.
    pub(super) async fn read(call: &Call, calls: &[CallRecord]) -> Result<Self, Problem> {
        let (store, realm) = (&call.state.store, call.realm());
        let agents = calls.iter().filter_map(|call| call.agent.as_deref());
        let key_ids = calls.iter().filter_map(|call| call.key_id.as_deref());
        Ok(Self {
            agents: names::read_agent_names(store, &realm, agents).await?,
            keys: names::read_virtual_key_names(store, realm.keys(), key_ids).await?,
            hashes: call_trail::for_call(call)
                .hashes(calls.iter().map(|call| call.audit_seq))
                .await?,
        })
    }
}

/// One call with its tokens, cost and outcome.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CallRecord)]
pub(super) struct CallView<'a> {
    /// Id of the decision. `GET /decisions/{id}` explains it.
    #[schema(value_type = is::DecisionId)]
    id: &'a str,
    /// Time of the decision.
    #[schema(value_type = is::Time)]
    at: String,
    /// Time at which its end was recorded; null for a denied call.
    #[schema(value_type = Option<is::Time>)]
    ended_at: Option<String>,
    /// The UTC day that it is charged to: that of its approval by the store's clock; null for a denied one.
    #[schema(value_type = Option<is::Day>)]
    charged_on: Option<String>,
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<&'a str>,
    #[schema(example = "Research bot")]
    agent_name: Option<&'a str>,
    #[schema(value_type = Option<is::RunId>)]
    run_id: Option<&'a str>,
    #[schema(value_type = Option<is::VirtualKeyId>)]
    key_id: Option<&'a str>,
    #[schema(example = "laptop")]
    key_name: Option<&'a str>,
    /// The requested model.
    #[schema(example = "gpt-4o")]
    model: Option<&'a str>,
    /// `chat.completions`, `responses` or `embeddings`; null, like all measurements, for a denied call, for one that
    /// nobody settled, and for one that an earlier release recorded.
    #[schema(example = "chat.completions")]
    endpoint: Option<&'a str>,
    #[schema(example = false)]
    stream: Option<bool>,
    /// Name of the upstream; null also for the default one, which has no name.
    #[schema(example = "azure")]
    upstream: Option<&'a str>,
    /// As reported by the provider; null also if it reported none.
    #[schema(example = 1200)]
    input_tokens: Option<u64>,
    /// The part of the input tokens that the provider had cached.
    #[schema(example = 0)]
    cached_tokens: Option<u64>,
    #[schema(example = 85)]
    output_tokens: Option<u64>,
    estimated_usd: Option<Nanos>,
    #[schema(value_type = Option<is::NanoUsd>)]
    estimated_nanos: Option<String>,
    /// The charge: the estimate if the cost is unknown.
    cost_usd: Nanos,
    #[schema(value_type = is::NanoUsd)]
    cost_nanos: String,
    /// To the end of the answer.
    #[schema(example = 812)]
    latency_ms: Option<u64>,
    /// To the first byte of the answer.
    #[schema(example = 140)]
    first_byte_ms: Option<u64>,
    /// The end of the answer.
    #[schema(example = "completed")]
    end: Option<&'a str>,
    /// Number of extensions of its hold.
    #[schema(example = 0)]
    extensions: Option<u64>,
    #[schema(value_type = is::Outcome)]
    outcome: &'a str,
    /// Reason of the denial.
    #[schema(value_type = Option<is::DenialReason>)]
    reason: Option<&'a str>,
    /// Number of denials beyond a key's rate that this record stands for; 1 for a call.
    #[schema(example = 1)]
    count: u64,
    /// The number of its entry in the audit trail: of the last one, where its charge was corrected.
    #[schema(minimum = 1, example = 118)]
    audit_seq: u64,
    /// The hash of that entry.
    #[schema(value_type = is::Sha256)]
    hash: String,
    /// Version of the price table of its estimate and its charge.
    #[schema(value_type = Option<String>, example = "5d1e0c4f8a2b6397")]
    price_version: Option<&'a str>,
    /// The details of the charge beside model and tokens; null for an ordinary call.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = Option<BillingView>)]
    billing: &'a Billing,
}

/// Writes the object of a detail that is not the default, or null.
fn shown<S: Serializer>(billing: &&Billing, serializer: S) -> Result<S::Ok, S::Error> {
    billing.shown().serialize(serializer)
}

impl<'a> CallView<'a> {
    pub(super) fn new(call: &'a CallRecord, names: &'a CallNames) -> Self {
        let name = |names: &'a Names, id: Option<&str>| id.and_then(|id| names.get(id)).map(String::as_str);
        let measures = &call.measures;
        Self {
            id: &call.id,
            at: iso_from_ms(call.decided_ms),
            ended_at: call.is_approved.then(|| iso_from_ms(call.recorded_ms)),
            charged_on: call.is_approved.then(|| date_from_day(call.day)),
            agent_id: call.agent.as_deref(),
            agent_name: name(&names.agents, call.agent.as_deref()),
            run_id: call.run.as_deref(),
            key_id: call.key_id.as_deref(),
            key_name: name(&names.keys, call.key_id.as_deref()),
            model: call.model.as_deref(),
            endpoint: measures.endpoint.as_deref(),
            stream: measures.stream,
            upstream: measures.upstream.as_deref(),
            input_tokens: measures.input_tokens,
            cached_tokens: measures.cached_tokens,
            output_tokens: measures.output_tokens,
            estimated_usd: call.estimate,
            estimated_nanos: call.estimate.map(|estimate| estimate.get().to_string()),
            cost_usd: call.cost,
            cost_nanos: call.cost.get().to_string(),
            latency_ms: measures.latency_ms,
            first_byte_ms: measures.first_byte_ms,
            end: measures.end.as_deref(),
            extensions: measures.extensions,
            outcome: &call.outcome,
            reason: call.reason.as_deref(),
            count: call.count,
            audit_seq: call.audit_seq,
            hash: names
                .hashes
                .get(&call.audit_seq)
                .map(hex::encode)
                .unwrap_or_default(),
            price_version: call.price_version.as_deref(),
            billing: &measures.billing,
        }
    }
}

/// Makes the cell of a row.
pub(super) type CallCell = fn(&CallView<'_>) -> String;

/// The columns of a CSV file. New ones are only ever added at the end.
pub(super) const COLUMNS: [(&str, CallCell); 41] = [
    ("id", |call| call.id.to_owned()),
    ("at", |call| call.at.clone()),
    ("endedAt", |call| optional(call.ended_at.as_deref())),
    ("agentId", |call| optional(call.agent_id)),
    ("agentName", |call| optional(call.agent_name)),
    ("runId", |call| optional(call.run_id)),
    ("keyId", |call| optional(call.key_id)),
    ("keyName", |call| optional(call.key_name)),
    ("model", |call| optional(call.model)),
    ("endpoint", |call| optional(call.endpoint)),
    ("stream", |call| optional(call.stream)),
    ("upstream", |call| optional(call.upstream)),
    ("inputTokens", |call| optional(call.input_tokens)),
    ("cachedTokens", |call| optional(call.cached_tokens)),
    ("outputTokens", |call| optional(call.output_tokens)),
    ("estimatedUsd", |call| optional(call.estimated_usd)),
    ("costUsd", |call| call.cost_usd.to_string()),
    ("latencyMs", |call| optional(call.latency_ms)),
    ("firstByteMs", |call| optional(call.first_byte_ms)),
    ("end", |call| optional(call.end)),
    ("extensions", |call| optional(call.extensions)),
    ("outcome", |call| call.outcome.to_owned()),
    ("reason", |call| optional(call.reason)),
    ("count", |call| call.count.to_string()),
    ("chargedOn", |call| optional(call.charged_on.as_deref())),
    ("auditSeq", |call| call.audit_seq.to_string()),
    ("hash", |call| call.hash.clone()),
    ("priceVersion", |call| optional(call.price_version)),
    ("tierAsked", |call| optional(call.billing.tier_asked.as_deref())),
    ("tierReported", |call| {
        optional(call.billing.tier_reported.as_deref())
    }),
    ("reasoningTokens", |call| tokens(call.billing.reasoning_tokens)),
    ("cacheWriteTokens", |call| tokens(call.billing.cache_write_tokens)),
    ("cacheWrite12hTokens", |call| {
        tokens(call.billing.cache_write_12h_tokens)
    }),
    ("cacheWrite30mTokens", |call| {
        tokens(call.billing.cache_write_30m_tokens)
    }),
    ("audioInputTokens", |call| tokens(call.billing.audio_input_tokens)),
    ("audioOutputTokens", |call| {
        tokens(call.billing.audio_output_tokens)
    }),
    ("webSearch", |call| flag(call.billing.web_search)),
    ("longCache", |call| flag(call.billing.long_cache)),
    ("reportedCostUsd", |call| optional(call.billing.reported_cost)),
    ("pricePrefix", |call| {
        optional(call.billing.price_prefix.as_deref())
    }),
    ("providerStatus", |call| optional(call.billing.provider_status)),
];

/// Empty unless there are any.
fn tokens(count: u64) -> String {
    optional(Some(count).filter(|count| *count > 0))
}

/// Empty unless it is set.
fn flag(is_set: bool) -> String {
    optional(is_set.then_some("true"))
}
