//! What a stream cost.

use super::end::StreamEnd;
use crate::call::call_request::{CallRequest, StreamRequest};
use crate::upstream::usage;
use domain::entry::How;
use domain::money::Nanos;
use domain::price::{Usage, reported_cost};
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
    /// The cost by the provider's usage, or the one that it reports, where that counts and is larger. Without a usage
    /// of the whole answer, the largest of what is held, what the text that was seen costs, the usage so far and the
    /// reported cost: never less than the estimate, since reasoning is not seen.
    pub fn new(
        request: &CallRequest,
        asked: &StreamRequest,
        held: Nanos,
        (filter, end): (&Filter, StreamEnd),
    ) -> Self {
        let json = filter.usage();
        let usage = json.and_then(|json| usage::of_object(request.endpoint, json));
        let reported = json.and_then(|json| request.counted_cost(reported_cost(json)));
        let actual = usage.as_ref();
        let actual = actual.and_then(|usage| request.actual_cost(usage, filter.service_tier()));
        let is_whole = filter.usage_is_whole(end == StreamEnd::Complete);
        match actual {
            Some(cost) if is_whole => Self {
                cost: reported.map_or(cost, |reported| cost.max(reported)),
                usage,
                how: How::Settled,
            },
            so_far => {
                let seen = asked.cost_of_seen(request, filter.text_bytes(), filter.service_tier());
                let least = [so_far, seen, reported].into_iter().flatten();
                Self {
                    cost: least.fold(held, Nanos::max),
                    usage: None,
                    how: How::Estimated,
                }
            }
        }
    }
}
