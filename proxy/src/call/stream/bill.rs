//! What a stream cost.

use crate::call::chat_request::{ChatRequest, StreamRequest};
use crate::upstream::usage;
use domain::entry::How;
use domain::money::Nanos;
use domain::price::Usage;
use sse::Filter;

/// The final charge of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct StreamBill {
    /// What is charged.
    pub cost: Nanos,
    /// What the provider reported, if it did.
    pub usage: Option<Usage>,
    /// The word of the audit trail.
    pub how: How,
}

impl StreamBill {
    /// The cost by the provider's usage. Without one, the larger of what is held and what the text that was seen costs:
    /// never less than the estimate, since reasoning is not seen.
    #[must_use]
    pub fn new(request: &ChatRequest, asked: &StreamRequest, held: Nanos, filter: &Filter) -> Self {
        let usage = filter
            .usage()
            .and_then(|json| usage::of_object(request.endpoint, json));
        let actual = usage.as_ref();
        let actual = actual.and_then(|usage| request.actual_cost(usage, filter.service_tier()));
        match actual {
            Some(cost) => Self {
                cost,
                usage,
                how: How::Settled,
            },
            None => Self {
                cost: asked
                    .cost_of_seen(request, filter.text_bytes())
                    .map_or(held, |seen| seen.max(held)),
                usage: None,
                how: How::Estimated,
            },
        }
    }
}
