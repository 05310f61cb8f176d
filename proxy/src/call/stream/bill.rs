//! The charge of a stream.

use super::end::StreamEnd;
use crate::call::call_request::{CallRequest, StreamRequest};
use crate::upstream::usage;
use domain::entry::HoldOutcome;
use domain::money::Nanos;
use domain::price::{Usage, reported_cost};
use sse::Filter;

/// The final charge of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct StreamBill {
    /// The amount to charge.
    pub cost: Nanos,
    /// The usage that the provider reported, if any.
    pub usage: Option<Usage>,
    /// Method by which the cost was determined, as in the audit trail.
    pub how: HoldOutcome,
}

impl StreamBill {
    /// Computes the charge. With a usage of the whole answer: the cost of the usage, or the cost that the provider
    /// reports if it is used and larger. Without it: the largest of the hold, the cost of the text seen, the cost of
    /// the usage so far, and the reported cost. This is never less than the estimate, since reasoning is not seen.
    pub fn new(
        request: &CallRequest,
        stream_request: &StreamRequest,
        held: Nanos,
        (filter, end): (&Filter, StreamEnd),
    ) -> Self {
        let json = filter.usage();
        let usage = json.and_then(|json| usage::of_object(request.endpoint, json));
        // The last cost is in the filter's, too. It is read again so that an invalid one is logged, once a stream.
        let last = json.and_then(|json| request.counted_cost(reported_cost(json)));
        let reported = last.max(filter.cost_nanos().map(Nanos::from_stored));
        let actual = usage.as_ref();
        let actual = actual.and_then(|usage| request.actual_cost(usage, filter.service_tier()));
        let is_whole = filter.usage_is_whole(end == StreamEnd::Complete);
        match actual {
            Some(cost) if is_whole => Self {
                cost: reported.map_or(cost, |reported| cost.max(reported)),
                usage,
                how: HoldOutcome::Settled,
            },
            so_far => {
                let seen = stream_request.cost_of_seen(request, filter.text_bytes(), filter.service_tier());
                let least = [so_far, seen, reported].into_iter().flatten();
                Self {
                    cost: least.fold(held, Nanos::max),
                    usage: None,
                    how: HoldOutcome::Estimated,
                }
            }
        }
    }
}
