//! The charge of a call (specification "Proxy spend ledger", decisions D33 to D37), and the measurements that the audit
//! trail records with it.

use super::call_request::CallRequest;
use crate::metrics::UpstreamResult;
use crate::upstream::usage::BadUsage;
use crate::upstream::{UpstreamFailure, WholeAnswer};
use domain::entry::HoldOutcome;
use domain::measured::{Billing, CallEnd, Measured};
use domain::money::Nanos;
use domain::price::{ActualCost, Usage, reported_cost};
use http::StatusCode;
use sse::StreamFilter;
use std::time::Duration;

/// The final charge of a call.
#[derive(Debug)]
pub struct Bill {
    /// The amount to charge.
    pub cost: Nanos,
    /// Method by which the cost was determined, as in the audit trail.
    pub outcome: HoldOutcome,
    /// The usage that the provider reported, if any. Of a stream, only the usage that determined the cost.
    pub usage: Option<Usage>,
    /// The reason why the latest usage that the provider reported does not count.
    pub bad_usage: Option<BadUsage>,
    /// `service_tier` of the answer.
    pub tier_reported: Option<String>,
    /// True if the cost includes a web search.
    pub web_search: bool,
    /// The cost that the provider reported, if it is the charge because it exceeds the computed one.
    pub reported_cost: Option<Nanos>,
}

/// The end of the exchange with the provider.
#[derive(Debug)]
pub struct EndedExchange {
    /// For the audit trail.
    pub end: CallEnd,
    /// For the metrics.
    pub result: UpstreamResult,
    /// The provider's status; `None` if there was no answer.
    pub status: Option<StatusCode>,
    /// Time from sending the request to the end of the provider's answer.
    pub took: Duration,
    /// `None` if the answer was not a stream.
    pub stream: Option<EndedStream>,
}

/// Measurements that only a stream has.
#[derive(Debug)]
pub struct EndedStream {
    /// Time from sending the request to the first byte of the body; `None` if the body was empty.
    pub first_byte: Option<Duration>,
    /// Number of times the hold was raised.
    pub extensions: u32,
}

impl Bill {
    /// Computes the charge of a call by the provider's whole answer.
    pub fn from_whole(
        request: &CallRequest,
        estimate: Nanos,
        answer: &Result<WholeAnswer, UpstreamFailure>,
    ) -> Self {
        let answer = answer.as_ref().ok();
        let identity = request.upstream.identity();
        if answer.is_some_and(|answer| identity.releases(answer.status)) {
            return Self::without_usage(Nanos::ZERO, HoldOutcome::Released);
        }
        let success = answer.filter(|answer| answer.status.is_success());
        let Some(reported) = success.and_then(|answer| answer.reported.as_ref()) else {
            return Self::without_usage(estimate, HoldOutcome::Estimated);
        };
        let usage = reported.usage.unwrap_or_default();
        let tier = reported.service_tier.as_deref();
        let actual = usage.as_ref().and_then(|usage| request.actual_cost(usage, tier));
        Self {
            usage,
            bad_usage: reported.usage.err(),
            tier_reported: tier.map(str::to_owned),
            ..Self::new(actual, request.accepted_reported_cost(reported.cost), estimate)
        }
    }

    /// Computes the charge of a stream that ended with `end`, at `held` if its usage is not that of the whole answer.
    /// The charge is then also at least the cost of the text seen, and of the usage so far.
    pub fn from_stream(request: &CallRequest, held: Nanos, filter: &StreamFilter, end: CallEnd) -> Self {
        let json = filter.usage();
        let reader = request.usage_reader();
        let usage = json.and_then(|json| reader.tokens(json).ok());
        // The filter has the last cost, too. It is read again so that an invalid one is logged, once a stream.
        let last = json.and_then(|json| request.accepted_reported_cost(reported_cost(json)));
        let reported = last.max(filter.cost_nanos().map(Nanos::from_stored));
        let tier = filter.service_tier();
        let so_far = usage.as_ref().and_then(|usage| request.actual_cost(usage, tier));
        let is_whole = so_far.is_some() && filter.usage_is_whole(end == CallEnd::Completed);
        let bill = if is_whole {
            Self::new(so_far, reported, held)
        } else {
            let seen = request.cost_of_text(filter.text_bytes(), tier);
            let so_far = so_far.map(|actual| actual.cost);
            let held = [so_far, seen].into_iter().flatten().fold(held, Nanos::max);
            Self::new(None, reported, held)
        };
        Self {
            usage: usage.filter(|_| is_whole),
            bad_usage: filter.bad_usage().and_then(|json| reader.tokens(json).err()),
            tier_reported: tier.map(str::to_owned),
            ..bill
        }
    }

    /// Charges `actual`, the cost of the usage of the whole answer, or `held` if it is not known. The charge is never
    /// less than the cost that the provider reports, if reported costs are used. `held` is never less than the
    /// estimate, since reasoning is not seen.
    fn new(actual: Option<ActualCost>, reported: Option<Nanos>, held: Nanos) -> Self {
        let (computed, outcome) = match actual {
            Some(actual) => (actual.cost, HoldOutcome::Settled),
            None => (held, HoldOutcome::Estimated),
        };
        let reported_cost = reported.filter(|reported| *reported > computed);
        Self {
            web_search: actual.is_some_and(|actual| actual.web_search),
            reported_cost,
            ..Self::without_usage(reported_cost.unwrap_or(computed), outcome)
        }
    }

    const fn without_usage(cost: Nanos, outcome: HoldOutcome) -> Self {
        Self {
            cost,
            outcome,
            usage: None,
            bad_usage: None,
            tier_reported: None,
            web_search: false,
            reported_cost: None,
        }
    }

    /// Builds the measurements of the call for the audit trail.
    pub fn measured(&self, request: &CallRequest, exchange: &EndedExchange) -> Measured {
        let usage = self.usage.as_ref();
        let stream = exchange.stream.as_ref();
        let in_ms = |time: Duration| u64::try_from(time.as_millis()).ok();
        Measured {
            endpoint: request.endpoint,
            streamed: request.stream.is_some(),
            upstream: request.upstream.identity().name.clone(),
            input_tokens: usage.map(|usage| usage.prompt_tokens),
            cached_tokens: usage.map(|usage| usage.cached_tokens),
            output_tokens: usage.map(|usage| usage.completion_tokens),
            latency_ms: in_ms(exchange.took),
            first_byte_ms: stream.and_then(|stream| stream.first_byte).and_then(in_ms),
            end: exchange.end,
            extensions: stream.map_or(0, |stream| stream.extensions),
            billing: self.details(request, exchange.status),
        }
    }

    /// Returns the details from which the charge can be recomputed.
    fn details(&self, request: &CallRequest, status: Option<StatusCode>) -> Billing {
        let [tier_asked, tier_reported] = request.notable_tiers(self.tier_reported.as_deref());
        let prefix = request.upstream.identity().notable_price_prefix();
        let billing = Billing {
            tier_asked: tier_asked.map(str::to_owned),
            tier_reported: tier_reported.map(str::to_owned),
            web_search: self.web_search,
            reported_cost: self.reported_cost,
            price_prefix: prefix.map(str::to_owned),
            provider_status: status
                .filter(|status| *status != StatusCode::OK)
                .map(|status| status.as_u16()),
            ..Billing::default()
        };
        match &self.usage {
            Some(usage) => Billing {
                reasoning_tokens: usage.reasoning_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                cache_write_12h_tokens: usage.cache_write_12h_tokens,
                cache_write_30m_tokens: usage.cache_write_30m_tokens,
                audio_input_tokens: usage.prompt_audio_tokens,
                audio_output_tokens: usage.completion_audio_tokens,
                long_cache: request.shape.long_cache,
                ..billing
            },
            None => billing,
        }
    }

    /// Returns the cost if the provider's usage determined it.
    pub fn actual(&self) -> Option<Nanos> {
        (self.outcome == HoldOutcome::Settled).then_some(self.cost)
    }
}

#[cfg(test)]
mod tests;
